"""What vLLM calls the kinds of requests, and the settings of an engine of its; needs no vLLM."""

from __future__ import annotations

from typing import Any

from wfsa.integrations.serving import Settings

KINDS = {
    "JSON": "json", "JSON_OBJECT": "json_object", "REGEX": "regex", "GRAMMAR": "grammar", "CHOICE": "choice",
    "STRUCTURAL_TAG": "structural_tag",
}  # fmt: skip


def settings_of(vllm_config: Any) -> Settings:
    """The settings of an engine."""
    given = getattr(vllm_config, "additional_config", None) or {}
    given = given.get("wfsa", {}) if isinstance(given, dict) else {}
    return Settings.of(given, "additional_config['wfsa']")
