"""Digests of what is bundled, so that a claim can say whether it is about that.

Written by ``python -m tests.check.digests``: a default search of every built-in model, in both settings.
"""

from types import MappingProxyType

SPACES = MappingProxyType(
    {
        "93b9331ea11f4804d35f35b58d243ccc65b532488ba043ec1cc26aedac6cd498": "the space of the ICML 2024 paper",
        "142bd61f3558b5a08565dc388169098e3e7939934097f3849ab4fb0688ca9d70": "n3-reticle",
        "23661561c1a783391f5b9e448e92f87fd24737127a315d6c9e4d6a46d316092f": "n5-reticle",
        "cadbe465e9ca4c0f3cbfa656a9040ad357cb95df488cdfe01cf57412a5bb61e2": "n7-reticle",
    }
)
NETWORKS = MappingProxyType(
    {
        "ee830d7be7cf5729f8739f0ae66996f16112efbab6f33409ccebfc9d4f02b183": "paper-flat",
        "45c8268d478585f7b184a6ad0826688bff35434f6a7078602a334f3ebaf412c8": "selene",
        "fb38b79b649813fa47e413737b9b4065a6b6a95021d282d1212ec34c349a43b0": "dgx-h100",
        "e1cb19e320761e7e2461699103b6b39a47535bb67a0ff536cacc5522408bf3c3": "tpu-v4-pod",
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
        "d3333c15dcbcd872f8338e0394fff6ffce8384a89d9ff58ff77a50a2a265b502": "mixtral-8x22b",
        "1790b90a2e3e1b98c32cbbe4eccc2d8cf41429f94664fe1e5a2310f21c7bdc9e": "grok-1",
        "c29c6ed29fe057e4b21446d835ef93c8f485615d98278b873cd83c00cdc3a55a": "qwen3-30b-a3b",
        "5ca90c1b55b569406b535fc90995ede08f470237595a5cee9fd948982bb8973d": "qwen3-235b-a22b",
        "2b723bb0709ebb45ed4b4a715b78c45b23587eb4faa057c08f0c9b862642058c": "deepseek-v3",
        "afa900f556e9e5b100b0f447b340f954a93ca3cb5b979716ebe679caf824882c": "kimi-k2",
        "874b2a0b28f49f4d379a6a2efb8bfcbd8914d16bb7c8f95a3067765fda1fd06e": "gpt-oss-120b",
        "6bcbb1bab5353e8704f257fae1b5e310fb820a2d844f258278c9706871b13a4e": "t5-large",
        "a35b3b43aafe4b90d68935e76471fbce630d2396a56c1a8d131568e3f408f2f9": "vit-large",
    }
)
CHIPS = MappingProxyType(
    {
        "3ec001c240cea8ae021b9fdeb0f9261fa371c6d8d921c802a6e5d32680fa8e4a": "a100-40gb",
        "1e3aea4ec633f03c32db9ce53ac1c740c2ff108aa1670976d8b96edf92a0e41c": "a100-80gb",
        "7e60f87abc17b6a47f953b63ee57ba4ad575b4658d083c5a8015bb10439d622f": "a100-pcie-80gb",
        "91f9590e5ff7243b58a05fb54805f4c6d1e4708bff3a6c0dd7ed02c31ce1f7dd": "aldebaran",
        "46fc9e66b3c7f6b619274519bf6a967069c97cd9d932094e27df416dfa5457c1": "ascend-910",
        "efb22b0368e1204fb089b92756d52175078db2d5979850ace874531020507162": "b200",
        "a93584f02b0e517943cf773a636405941d6346157e7134cec233820be3d86948": "b300",
        "97be5f900b48ecafccc699e694c153d8a4cb7d5d288de113dba6b9e69f6df034": "gaudi2",
        "765ee614b6a777d1f57d71b00beed9a9f4a535eab207a941afcb1c4650cbb5c8": "gaudi3",
        "34ec43c3f1de40287113cdcde3c71dc30686558a6d8b2cbd436c9dd0aab9ea13": "gb200",
        "9c2743fa6de6ed5a88443255370b320912585b0e1a5d3cfeb45abfa0c838a6c1": "gb300",
        "0f66b20887b0fb43ec5a8c98b590207c2a9bd69c142ebe91e1fe7aa3d106ce6b": "gc200",
        "e82405307b93e0d402286817f11a4ba5d8f6527271e5d0c9b5268e107f8dc5eb": "gh200",
        "84d0de0a50208ed0632f41c26b94771ce8e901776e291802b0d8b904f905d445": "gv100",
        "ab28173012ccef1ebf4b95ac2dcb6eb7fe746f048007d04af817349462a91228": "h100",
        "0c41ade8758a85a7121f3ba847fd09aa560689cbd629317a858f541585d4110f": "h100-500w",
        "8dc98343532b3b8ba5db31a37f7d9c3ec4d5723eaf7607c49dbd6a0d7e731504": "h200",
        "49b41d2162381260dcc1391b6caa7cd90894a6e1e40a6ef1ffcfbc73004f25a8": "h800",
        "e50af215e3068d72f5eb308996b946714bc3fc9a919d74bc08cdd3b175030e00": "mi100",
        "a92e28c95a39e625b884e662e2688b622b295b34f0ee19be10a2e2665d600eb4": "mi250x",
        "2f51f58143ad64b115611ab0f648b6d6f61433d9bb70d7a267084057d07e275a": "mi300x",
        "4aecc18f464c8089b12f666814e030521a64a4078f0848d1f30726fdbfe8e7d6": "mi325x",
        "e556b438047d87ee50f93b2174355b27da9518b54418ee406cc3f9e34ae5da8f": "mi355x",
        "edc76eb44e19c5a5d4800b9f619e9124401bdee0d96b217d79e5f9a370b17bf0": "mtia-v2",
        "91f141b89f30f678bc39e06e5c82d709c73fa09d1e4d7420e3147e13caf159cb": "tpu-v2",
        "acca25060e338acff8f4806decf36fb564df345b56b593d39142d770b2de3ee3": "tpu-v3",
        "f57f92c6e8f0455386aea7133f4b9fc7e03e6a4452ec5b90b2e0e5d0fcf61c7a": "tpu-v4",
        "a15f57b26c5e1b6df865234b970f7cdfb4390267e6967b0559de9b8d54e8913d": "tpu-v4-paper",
        "a7235a3043de3e8ad9b80e06c280189dbecb7217eeb30cb00e2aa32a3031ea15": "tpu-v4i",
        "06d571e5b1e2611d15341f26062d2ab0d47335560fd4b8fabd2d7d1f39d8a261": "tpu-v5e",
        "4e601666fda029ce75cce53625a4d54229c2a385e05ad197753a59cd8e288f76": "tpu-v5p",
        "2fdea22eb1e49396be13c3012af8c3582b28284148975f8fd5a49923788764a1": "tpu-v6e",
        "7510ce2940a6f88f6ce36b11d83149320932b89ec49bb31aedb1a01908c1f665": "tpu7x",
        "1331ab46ca14aa97b4a7d65015ca8ec536bbc70ecd84dbedb53af6bcefdaf415": "trainium1",
        "f18ff439dcb151ce2f3ee4cd7acd4c7b6eaef9f9def6e7e10e163566e600d759": "trainium2",
        "32f62f0dabaa232db0a66f98bd2c9bc03478fa01ce61de847b71e31956287182": "v100-16gb",
        "95655e48e8c8730a129a8429d385a3f9bd97fc2c0f2494fad051f3cf3171dfd0": "v100-32gb",
        "ba7e8180a55704811e51867ab9aa68e0873df7e57fa7f813fc86f0700de19202": "wormhole",
    }
)
STACKS = MappingProxyType(
    {
        "0e9e7e5d4a289769e1204eeede58ea76ae0b06b8fae493b80ac1c0f65faffd72": "icml24",
        "8a6cd620659badebd0fc7272083b6410ffbfccb4a615364ddc280bfaf2655b79": "ideal",
        "036f00fd0282dd26e60f5ac330472da062c343410b8f516d070657b48797a932": "llm-foundry",
        "be7e5ad724c9d11716acef38e30fe9c8566a9ce8e65c0d37b9e4eb44605db00d": "maxtext-25.02",
        "f2e89e1122f0df28700bb46e6b1244235fece4f707d8da1cdab233b3b363aebd": "maxtext-24.11",
        "aeaac530da2af1c090da2e211b01a1d91edd8fdc5fc3183462da0394fdab28d3": "megatron-2021",
        "776894c44fc8a6dfdc524fa05961595ed0437455964a083fd94bd9adb35624ab": "megatron-2022",
        "d0229a62a9519361b02d54b555095a61c4bfe21985d4ba0eb1ef34493c47564e": "megatron-core-26.02",
        "4e9f0ec61dc5c5930553b129e305323320402ae0f6d3a5dfdeeef8a7617a1c45": "megatron-core-2024",
        "9f1342ecc7348434dde5860dc96606e527acd3827dfc99fcd6d77a7b9578a3e4": "megatron-core-24.03",
        "f51b5ddf4e177a2e87406d37f9a9ccd9b9fa2682e60c53d356b93f57bfa9201e": "megatron-core-24.07",
        "e75c35bf56cab4a979b4e3c8de00c8d71057b56eb70ebc08051c470f022ec78c": "megatron-core-24.11",
        "f0f1caf8b5c197f3a568fe9dbb7caac6ff4785c13a36202c0fc117e792796f95": "megatron-core-25.02",
        "eed93967a479b3488b3d7a9a6d04394e8d852a7357aa453fd84edf70b250a2d4": "megatron-core-25.04",
        "4822291121d9bde6d81358709ce2ba98e26be3d30af5c6192855ea7be3e0ad9a": "megatron-core-25.09",
        "e891849b302ddcfb9a83fc0ab0b5e64a311746e06c8a7fdb6e77ef39ed22a1c2": "megatron-deepspeed",
        "1fbcf970efcc159c00df5c71fe26c4610a41a804d3cee7ac84f7565c3e2e001d": "nanotron",
        "73e20ab1657a8ab87b1d0976463d7672bc511d7326af5abc2c45021e25f7c36d": "paxml",
        "f96f6ea2459d0a4f2c29fdc0eb43ce5bd7a8440d100693de0a157e166db9cb32": "torchtitan-25.06",
        "53bf8c8cb784ffd6a30b300b61cc170fae10b751170047d7ffc76251a000ebc1": "torchtitan-24.12",
        "7eb514e5bd397b9eae6c50124ba1e93b1afb6ba45fdbf8034e6ea2e1f4c42e3e": "torchtitan-async",
        "2b1180adc1596e1f94e2b358584f1cb48f3af2e100e58649765757b9965ce919": "torchtitan-eager",
    }
)
TERMS = MappingProxyType(
    {
        "3b677568d0410c132dec90cdcce79224c9c2004fc447267bf7b6264b213b6a8a": "terms",
    }
)
