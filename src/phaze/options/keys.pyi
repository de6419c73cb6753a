# Written by python -m tools.key_stubs: the documents of keys.py with their fields.
from collections.abc import Mapping, Sequence

from phaze.documents import Document
from phaze.options import values
from phaze.options.key_fields import KeyField

FIELDS: Mapping[str, Sequence[KeyField]]

class TrainingKeys(Document):
    devices: values.Count | None = None
    batch: values.BatchSize | None = None
    sequence: values.Length | None = None
    shard: values.ShardChoices | None = None
    attention: values.AttentionChoice | None = None
    precision: values.Precision | None = None
    headroom: values.Headroom | None = None
    tokens: values.TokenCount | None = None
    terms: values.Place | None = None
    expert: values.Choices | None = None
    context: values.Choices | None = None
    context_way: values.WayChoices | None = None
    imbalance: values.Positive | None = None
    capacity: values.Positive | None = None
    chunks: values.Choices | None = None
    family: values.FamilyChoices | None = None
    zero: values.ZeroChoice | None = None
    cluster: values.Place | None = None
    stack: values.Place | None = None
    optimizer: values.Optimizer | None = None
    microbatches: values.Choices = ...
    sequence_parallel: values.SequenceParallel = False

class CostKeys(Document):
    basis: values.Basis | None = None
    residency: values.YesOrNo = True

class ObjectiveKeys(Document):
    kind: values.Kind = "throughput"
    mean: values.Mean = "geometric"
    baseline: values.Place | None = None

class SearchKeys(Document):
    gap: values.Share | None = None
    round_size: values.RoundSize = 16

class RunKeys(Document):
    devices: values.Count
    batch: values.BatchSize
    sequence: values.Length | None = None
    tokens: values.TokenCount | None = None
    precision: values.Precision | None = None
    attention: values.Attention | None = None
    imbalance: values.Positive | None = None
    capacity: values.Positive | None = None

class RunPlanKeys(Document):
    tensor: values.Count
    chunks: values.Count = 1
    family: values.PipelineFamily | None = None
    zero: values.ZeroStage = 0
    context: values.Count = 1
    expert: values.Count = 1
    shard: values.ShardRanks | None = None
    microbatch: values.Count
    context_way: values.Way = "ring"

class AnswerPlanKeys(Document):
    tensor: values.Count
    chunks: values.Count = 1
    family: values.PipelineFamily | None = None
    zero: values.ZeroStage = 0
    context: values.Count = 1
    expert: values.Count = 1
    shard: values.ShardRanks | None = None
    attention: values.Attention = "eager"

class AnswerJobKeys(Document):
    zero: values.ZeroStage = 0
    attention: values.Attention = "eager"

class RestrictedKeys(Document):
    tensor: values.Choices | None = None
    microbatch: values.Choices | None = None
    context: values.Choices | None = None
    context_way: values.WayChoices | None = None
    expert: values.Choices | None = None
    zero: values.ZeroChoice | None = None
    family: values.FamilyChoices | None = None
    chunks: values.Choices | None = None
    headroom: values.Headroom | None = None

class ProfileKeys(Document):
    devices: values.Count
    zero: values.ZeroStage | None = None

class PointKeys(Document):
    tensor: values.Count
    microbatch: values.Count
    chunks: values.Count
    zero: values.ZeroStage
    family: values.PipelineFamily | None = None
    context: values.Count | None = None
    context_way: values.Way | None = None
    expert: values.Count | None = None
    shard: values.ShardRanks | None = None
