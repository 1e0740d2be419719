"""vLLM's names of the kinds of requests, and the settings of its engines; importing this needs no vLLM."""

from __future__ import annotations

from typing import Any

from wfsa.integrations.serving import Settings

KINDS = {
    "JSON": "json", "JSON_OBJECT": "json_object", "REGEX": "regex", "GRAMMAR": "grammar", "CHOICE": "choice",
    "STRUCTURAL_TAG": "structural_tag",
}  # fmt: skip


def settings_of(vllm_config: Any) -> Settings:
    """Returns wfsa's settings of a vLLM engine."""
    config = getattr(vllm_config, "additional_config", None) or {}
    settings = config.get("wfsa", {}) if isinstance(config, dict) else {}
    return Settings.of(settings, "additional_config['wfsa']")
