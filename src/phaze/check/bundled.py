"""Digests of what is bundled, so that a claim can say whether it is about that.

Written by ``python -m tests.check.digests``: a default search of every built-in model, in both settings.
"""

from types import MappingProxyType

SPACES = MappingProxyType(
    {
        "dfb558056cae3411d189a4c525c3b4dfc8c9c0fa8b47a33e90587b4e0c71a6fd": "the space of the ICML 2024 paper",
        "aebf9e8836672fe745db3a81279bed2ba3edf505e5758a2744d4cd829c0b1ea9": "n3-reticle",
        "b3c08c34068f6f1027914387109a3c8824b75ed3f2202cddc540d02ede75b9b6": "n5-reticle",
        "63fad40c1133f9b9bfe282da3611e1f9f95b60f13a159b3e607d2d804c940381": "n7-reticle",
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
        "def87b963e328767fd9cd152b4d4e0c66667f338120b441d41aa6baf93731904": "nemotron-4-340b",
        "f3f242e804f58c2a05470a2d2de704b7871a872f350ff43a884b3ffb980b6c14": "gemma-2-27b",
        "996f66d29b42ff3a5b66476ac1cfff430a0665fb6e43fb71dac1780ff5c912b4": "mixtral-8x7b",
        "c24e577cbe9954c466eb32fe693d21ed4be6f69d3d3fb01fefb291a1b15495eb": "mixtral-8x22b",
        "4adc314e50306ee3993cddabcfbb67cf6ae6c8f485edea64f608109d194e9c8b": "grok-1",
        "63795064f28cc286a453e59056cd4e84055426547336feece24a054750e2c2c5": "qwen3-30b-a3b",
        "fe24d44aab952531b9ad0b09595132633fc248423df46c5a428630828f78ca73": "qwen3-235b-a22b",
        "06817fc225eae12da8437d280d0074938e76338b58c0b80f01894c3c363a4f68": "deepseek-v3",
        "39bbdeac61235c42e7011763dc0205fd056ebc0d5bad66425641dd8980eded83": "kimi-k2",
        "07d6549ecadbdf8068300d734eed6c27b3ba5163eb7168393cccdbb4b1b93c16": "gpt-oss-120b",
        "37395b4ca2f7bdb0014c03705ae4eb6c37e3d5b08a8aede7943f0a7b9ef4c32e": "t5-large",
        "ba4ab41c8002cc883fb817b1e94c0bba2c7ba8e964f8652fa298e9011cc4fdfd": "vit-large",
        "06bb546b6f7eea324f8ca072dcfa63bc9daf84d3f19c0de19114d5d215f5eb91": "bert-large",
        "5ba11c38fd1075ced15dfdb2b716c41d0b1e9300a5fbe1d42f1d7ccfceca11cd": "gpt2-xl",
        "c44f2e9afc25f0eca1ca18721ba29a014989bacd45e7037b6f09a57ee6894b46": "opt-350m",
        "76dfa91aaa33c97473fd9b79d68e04e357b91de34c4285300d947f593ee4d080": "llama2-7b",
        "62f80b89a7ed8b6f216c9c3b464758669f34c183446c38115fb7cfcf7bbc17a7": "megatron-bert-large",
        "3dadc5c62be8e0df191eb68816bbed84cda087b0344bcac3ba89800a4f2eb328": "megatron-gpt2-54",
        "8c2d00e51c070d36274da30e6ee38db18847a48804cc24e650e28333aaa06f49": "megatron-gpt2-72",
        "5797542d81813488c7e7b493ae6a3978484fa5000b7a08b8445f524f1d492d9a": "gpt3-175b",
        "28dbc117dbd1e4e1657c9a7010ab3f76f3ad97b6ac1109bfe9ed81fcbeadff4e": "llama3-8b",
        "a26a802f375b6e382d01573dc41e77f11554a875da2160eaf4f931b0fccf31f4": "llama3-70b",
        "40606174ef9469750d5e787743444328b67387d15adc656ad7a5ea23c15d5a87": "llama3.1-405b",
        "bf063d6d73459d90362bf62bcd39e0313d96754e87be8bb5cd3e61f6eedef7b4": "nemotron-4-340b",
        "6220468c2929a6286119eb975b7668bd4c99bcb984a78fedb935363dcb834927": "gemma-2-27b",
        "89bdb645e3bb2cf5cfd4e461fec01e9158dca10d3c592494bd7e93cf19f39d2d": "mixtral-8x7b",
        "e833e2e9a743ddbffbf613b5d307eb2433dc50b993ff11fc30c5cbc2adf31e33": "mixtral-8x22b",
        "5f81cc4017b601a82da30fcb7934f2e97cb94234176f085331e7dfb297aafd00": "grok-1",
        "dab95615a15ae293a5e54f05b73114eeabb85d3ec80b5765ac168ae41a945f25": "qwen3-30b-a3b",
        "b0a3fa876e0e9c35a0230f7bad309355f3b7afea7ad255fe5d34ea99485241e5": "qwen3-235b-a22b",
        "5bf7fa2563f3bfb9a600f9e82b53242c913fd117c0af8873b495931fca4eb742": "deepseek-v3",
        "afa900f556e9e5b100b0f447b340f954a93ca3cb5b979716ebe679caf824882c": "kimi-k2",
        "874b2a0b28f49f4d379a6a2efb8bfcbd8914d16bb7c8f95a3067765fda1fd06e": "gpt-oss-120b",
        "6bcbb1bab5353e8704f257fae1b5e310fb820a2d844f258278c9706871b13a4e": "t5-large",
        "a35b3b43aafe4b90d68935e76471fbce630d2396a56c1a8d131568e3f408f2f9": "vit-large",
    }
)
