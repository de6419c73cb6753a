"""stub"""
from phaze.graph.torch.hf import hf_config, hf_source
from phaze.graph.torch.named import NAMED
def named_source(name, **over):
    row = NAMED[name]
    return hf_source(name, hf_config({"model_type": row.kind, "architectures": [row.architecture], **row.sizes, **over}, name), row.sequence)
