"""Inputs and labels of one microbatch for a model of the transformers library, by what its forward
pass takes."""

import inspect
from typing import Any

import torch

from phaze.graph.torch.program import TensorShape

ONE_LABEL = (
    "ForSequenceClassification",
    "ForImageClassification",
    "ForNextSentencePrediction",
    "ForMultipleChoice",
)
"""Endings of classes whose labels are one a sample; others have one a token."""
CHOICES = 2
"""Answers of a multiple-choice example: the fewest that are a choice."""
USUAL_PIXELS = 224
"""Images where a configuration says no size: that of ImageNet models."""


def _tokens(*size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.long)


def _pixels(config: Any, batch: int) -> torch.Tensor:
    """An image of the size that the configuration names; 224 where the model takes any."""
    size = getattr(config, "image_size", None) or USUAL_PIXELS
    height, width = (size, size) if isinstance(size, int) else size
    return torch.randn(batch, getattr(config, "num_channels", 3), height, width)


def _main(model: Any, config: Any, shape: TensorShape) -> torch.Tensor:
    """What the model calls its main input: an image, spectra of sound, or tokens."""
    name, b, s = model.main_input_name, shape.microbatch, shape.sequence
    if name == "pixel_values":
        return _pixels(config, b)
    if name == "input_features" and hasattr(config, "num_mel_bins"):
        return torch.randn(b, config.num_mel_bins, 2 * config.max_source_positions)
    if name == "input_features" and hasattr(config, "input_feat_per_channel"):
        return torch.randn(
            b, config.max_source_positions, config.input_feat_per_channel * config.input_channels
        )
    if name == "input_values":
        return torch.randn(b, s)
    return (
        _tokens(b, CHOICES, s)
        if type(model).__name__.endswith("ForMultipleChoice")
        else _tokens(b, s)
    )


def model_inputs(model: Any, config: Any, shape: TensorShape) -> dict[str, Any]:
    """The arguments of one call, with labels, so that the model makes its own loss."""
    b, s = shape.microbatch, shape.sequence
    takes = inspect.signature(model.forward).parameters
    inputs: dict[str, Any] = {model.main_input_name: _main(model, config, shape)}
    vision = getattr(config, "vision_config", None)
    if vision is not None and {"input_ids", "pixel_values"} <= takes.keys():
        inputs |= {"input_ids": _tokens(b, s), "pixel_values": _pixels(vision, b)}
    if "return_loss" in takes:
        inputs["return_loss"] = True
    if "labels" in takes:
        inputs["labels"] = _tokens(b) if type(model).__name__.endswith(ONE_LABEL) else _tokens(b, s)
    if "next_sentence_label" in takes:
        inputs["next_sentence_label"] = _tokens(b)
    if {"start_positions", "end_positions"} <= takes.keys():
        inputs |= {"start_positions": _tokens(b), "end_positions": _tokens(b)}
    return inputs
