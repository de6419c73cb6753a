"""Digests of what is bundled, so that a claim can say whether it is about that.

Written by ``python -m tests.check.digests``: a default search of every built-in model, in both settings.
"""

from types import MappingProxyType

SPACES = MappingProxyType(
    {
        "dfb558056cae3411d189a4c525c3b4dfc8c9c0fa8b47a33e90587b4e0c71a6fd": "the space of the ICML 2024 paper",
    }
)
NETWORKS = MappingProxyType(
    {
        "bac1e633c74f965372d74e21a2361df10a948470153c5d2b5c71e5c978c8d2f4": "paper-flat",
        "e0c31254d3475f12a95fa30277cc37a79f1fe60d79be5de3b3ce13966b5355b0": "selene",
        "9c46b7154664df3508836ba3571b10ec115b9fde7da66920c9eb86780261b497": "dgx-h100",
        "ecbeee8d089cb74a6c973e3a00b76bff2c455797f90abe997b6c585fbbbdc7f3": "tpu-v4-pod",
    }
)
GRAPHS = MappingProxyType(
    {
        "1ed7b64e628f855fd73f2c29699cc423046028ca5fa2877b7b23464b53ed8198": "bert-large",
        "f228cbe704946bd8aef1ce59d028577d7bc46a69a7a413eb1a2daccb5c08eda4": "gpt2-xl",
        "6aa8c5d85560fea44c7ddff0aef1442055620b9653054c68e3f1d655198dc869": "opt-350m",
        "e81321cfff3191f4c36b2b88725a5c0504e1cb81e91a1461e26b18b057b133b3": "llama2-7b",
        "4a2d051ff3581538545768b296ee99660a7dcc1cbd1719609f19a0ec44c979ed": "megatron-bert-large",
        "c5d33ad382bd67f1540405b0a19ee1d647341a8572f972ea411c68e142706039": "megatron-gpt2-54",
        "b53c3903934208c45b1d347863e870aad21417e71d2f1660eca470490de9f193": "megatron-gpt2-72",
        "62fadbf80002ef805e903ef86bc7a4a71f6222d80a0185077c4f9228a4b04678": "gpt3-175b",
        "e4095c26ce7a7c2cc253699c79755aa3ac8da9c255214240b7ae60e19976278c": "llama3-8b",
        "57b55906e4d7e23ae593f34114c26b44ca7540c2b1bd190b96dd3fc244335e69": "llama3-70b",
        "ef2fa3db03c2b1de4a3fedd34696479ef86ed2e948bb6a157e31f9cac9055c40": "llama3.1-405b",
        "996f66d29b42ff3a5b66476ac1cfff430a0665fb6e43fb71dac1780ff5c912b4": "mixtral-8x7b",
        "c24e577cbe9954c466eb32fe693d21ed4be6f69d3d3fb01fefb291a1b15495eb": "mixtral-8x22b",
        "4adc314e50306ee3993cddabcfbb67cf6ae6c8f485edea64f608109d194e9c8b": "grok-1",
        "63795064f28cc286a453e59056cd4e84055426547336feece24a054750e2c2c5": "qwen3-30b-a3b",
        "fe24d44aab952531b9ad0b09595132633fc248423df46c5a428630828f78ca73": "qwen3-235b-a22b",
        "06817fc225eae12da8437d280d0074938e76338b58c0b80f01894c3c363a4f68": "deepseek-v3",
        "37395b4ca2f7bdb0014c03705ae4eb6c37e3d5b08a8aede7943f0a7b9ef4c32e": "t5-large",
        "ba4ab41c8002cc883fb817b1e94c0bba2c7ba8e964f8652fa298e9011cc4fdfd": "vit-large",
    }
)
