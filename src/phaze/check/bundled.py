"""Digests of what is bundled, so that a claim can say whether it is about that.

Written by ``python -m tests.check.digests``: a default search of every built-in model, in both settings.
"""

from types import MappingProxyType

SPACES = MappingProxyType(
    {
        "93b9331ea11f4804d35f35b58d243ccc65b532488ba043ec1cc26aedac6cd498": "the space of the ICML 2024 paper",
        "4c42413e3d50b87fe48316a20ad1ab7fc752b7992989231be8ec222ae05af1ad": "n3-reticle",
        "2caadff2c21c9b7de630fb80beabc947406db487e423f8b9c888999e05e7eece": "n5-reticle",
        "dff55221cb8f4674bc3a2f980445e569d36e9aad9ea44cb1f042e70224840f0a": "n7-reticle",
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
        "2985ed37f28580fc5a9e4a7d185131aace7b977163a5b1abcf5d21fcce225819": "a100-40gb",
        "37f763bdd6c55aaad90b1ff3d15f3e7a9c9cb7147a3d034da3c95e6cd405dbc9": "a100-80gb",
        "d5ce4f4618eea5cbadf770c44b774c54ecd8fce2fdc0971dff20999dde4addc0": "a100-pcie-80gb",
        "93aa8b687b139970a95c5885a2cd0077ca4286ae06a74459ef47e9355628260e": "aldebaran",
        "d96eea98d9ab92f95af29b77747c995f998cb10a7b3cc51f0b7bf9e309ece662": "ascend-910",
        "49299e4aedad1711b610494ebc0d504f9335ceac6a8cf1d8ca695a7d1c00bee4": "b200",
        "3a0df39df52ca87ebd1d6511c6ab87c75059b6ced9c4c0f0d41ebb5bcfe60821": "b300",
        "5bc557db11fc6ed80dfd8b72c332e9984b28e208ada09d5d8982f769dc8d8bf5": "gaudi2",
        "c8fd92ae92045a47ecad18ed90e72fca2107e13751c6a8e093c7d4962d2d0399": "gaudi3",
        "caaa0e2b4987c31ff62c3e3dd51d084a42b8e66e2617b2ea4b2418eef987b235": "gb200",
        "3ffb82ec89d91ee304077352936fdfb13e4c0482e91e6a3cd8a06751fe2874be": "gb300",
        "0800883a575f8a8190f0266a9b97a1fee98553c3271a9002fa72223142b0b888": "gc200",
        "83d4055698efe0d0e77cb8e7159baf4e9a05e13f101ef4c78842b4d095298975": "gh200",
        "5b4e9c02e1eaf81db67b4730816ec1adea705ff6267e4a3ff7c03e02f332c91b": "gv100",
        "6fa885b0cb0e404b0496127f8cb82efe101cdf86c6d8fe69dcb5c189ddf6a493": "h100",
        "16f7dbf480b2308f71bd06d68d4628fc2fd03626149a102cc1f192838a2a5ca8": "h100-500w",
        "aaf61ad6a5c834f3c59656a8ef4931ba6cedf8a3a5d1c73493a93a56df9e0e7e": "h200",
        "64d2beb8dd8495f8d02f7d3dd9e2c034a072c6ce18d182a041b5fcbfdaffbcf8": "h800",
        "375951afbb403253dff19a468e55eb16ef1db4bf25956563e0173bd153c652f4": "mi100",
        "03e981f8e28b66ba22c21ecc9a2424e76d120156729c91249acc7c15098c0339": "mi250x",
        "5711a9dccb23c49e0bd41aebcb9d81db6a568d4e631b524c59956b9cf9f1cc0b": "mi300x",
        "e2d7509080a72310ab87c0dfa5c10034ba0bdd5dcd93afa93df6e6977752d6af": "mi325x",
        "730f6bcc4e3814e995dfd315eba9ac5b9f8b156cd45a6e558118995fb77c7066": "mi355x",
        "74f81f53a53c990b7f9e64d4eeb8170ebe884b3b51b7789e11dc7d71b5dc9916": "mtia-v2",
        "91f141b89f30f678bc39e06e5c82d709c73fa09d1e4d7420e3147e13caf159cb": "tpu-v2",
        "acca25060e338acff8f4806decf36fb564df345b56b593d39142d770b2de3ee3": "tpu-v3",
        "7bcacce3a111e772eef82e4dbbbebabd3d8429010e81120add464b9a9d077ec6": "tpu-v4",
        "a15f57b26c5e1b6df865234b970f7cdfb4390267e6967b0559de9b8d54e8913d": "tpu-v4-paper",
        "eeb42e549995528fd10b4d0605a58a28e8426831166fdb1e91082d5a22fc4702": "tpu-v4i",
        "6e6d22dbb882743e931ff2e727b614e3664d80b710dffc783e0bd8c026bb7906": "tpu-v5e",
        "4205c7e550d27e9e9ccd78bfa07cea45198d8a0f30355b5c9573dde047d1336c": "tpu-v5p",
        "4c92ecfaf934a64ca2bc75373c6c0fac36d29ed5518c6e44f8870c1fac952aa2": "tpu-v6e",
        "306a8b1891f45d984998d50252c00cad320cc42a89bf826fde7ff1b65d21ad6e": "tpu7x",
        "1331ab46ca14aa97b4a7d65015ca8ec536bbc70ecd84dbedb53af6bcefdaf415": "trainium1",
        "f18ff439dcb151ce2f3ee4cd7acd4c7b6eaef9f9def6e7e10e163566e600d759": "trainium2",
        "0966b0849a8ff2843c879b2ec6c0c594ac23446d2941e081ae58214afd12ba7e": "v100-16gb",
        "06f80719d5b7c035171e7da39602fa0f3bc92422aac3681a1997bbbddb8ab0a7": "v100-32gb",
        "af1ac8d83995bc272138028ccdc4a71962608c418ad898bbfa6d3d2f8d9229b2": "wormhole",
    }
)
STACKS = MappingProxyType(
    {
        "684b444301a07b1512de79a0aaecfd1599d5bc3e6f7b2bd5a6e602ae22b6c880": "icml24",
        "00455c3876f34f925663d362f1302366102e65a343e68465158f4d50bdb810ef": "ideal",
        "fe370a7a538b6e54b0bd9e6ee814834b6fe5500fe5284bc3bbdc270bdb0924c4": "llm-foundry",
        "170cc6f404b0b24c4a8489076c05b0aca1dc27809d8ca5d5d2dc272f2b050d7b": "maxtext-25.02",
        "3c11b707a36878e1f41e4f699f5f6681e66af8560ce6d7686b2e51f3a0aead55": "maxtext-24.11",
        "06fbe3a1d513be3c4a3803df0352919cc4d6fef3ae9123e1f2aa2d5505fbd51f": "megatron-2021",
        "4f9d826a5d6426711bec7d5e0684906b79a53772d3a82e1f579dee5f48f1b2e6": "megatron-2022",
        "5558b92a65c8e10d2c101c96e13e013d920e0518d20d417a4208e27eca22d7a3": "megatron-core",
        "63513f74dba57e05a052aca1ee0a2af7380f736efb02e7ca131c03104b5afdcd": "megatron-core-2024",
        "ccf4456c61af34d51b089279f77b6e63a9369b2cbcdac97f436816c57a0ffec0": "megatron-core-24.03",
        "9250686ec46f8b5076b7c2f1e47f9dff33d90220618c7628fe71d937975324f8": "megatron-core-24.07",
        "52d968d6c365a35758f0f70eb83fae5b99922a3938047b1a5a3f14fb98495f8f": "megatron-core-24.11",
        "e59b4df9f8e9c25bd18a6159578a039485a72a4629630e04b4a8080b7d3303ce": "megatron-core-25.02",
        "31872da977b870a8f0c450a33799acb8e4f76ddf2c473df7456be31d21a8574d": "megatron-core-25.04",
        "291bf170588d09b03c40eb1db401a065c89bfd58bb7bf797f7493212e02e7db5": "megatron-core-25.09",
        "ba39025a605ba9a7047cc7f2348f5e18dade4a0b105377cd6fb7a6ac275fad3a": "megatron-core-26.02",
        "54246691cc8441136ecb6e1827f5b6cf69f2fbffef8c81dbc61cb4d85b6794e8": "megatron-deepspeed",
        "e84631f9ac4d5b90884d68122e2684f2dd6c512a4bbf67c981473c393edb9702": "nanotron",
        "53e6a043fe813a743fa333b50f72efeb32f1d6b9a8319d0f95c150374a2a5161": "paxml",
        "6122011beab93a825f105cea92549d29d29731a014d7e25a19ddfca849754475": "torchtitan-25.06",
        "688e94f18661f5b9ac63277f6b5971bd63a30768e205e75584ab54982fa2583e": "torchtitan-24.12",
        "f6ce1436955fb7d5dc4e39c2b8f349be2a5ac33d80283e2bb635ecf0d9895966": "torchtitan-async",
        "23433c59e682f51c656ab5a5daf7e635484dafa5c474a9f3ba7ce5ff33a3cb38": "torchtitan-eager",
    }
)
TERMS = MappingProxyType(
    {
        "3b677568d0410c132dec90cdcce79224c9c2004fc447267bf7b6264b213b6a8a": "terms",
    }
)
