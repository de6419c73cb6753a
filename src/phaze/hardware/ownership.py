"""Terms of ownership (``phaze.ownership/1``): what a chip costs in money and carbon beside its
process and power."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from phaze.documents import Document, Format, NonNegative, Positive, Reader, Share
from phaze.files import read_text
from phaze.hardware.bundled import read
from phaze.hardware.keys import Name, Sources, Text
from phaze.values import FrozenTable

PriceByName = Annotated[dict[str, NonNegative], AfterValidator(FrozenTable)]
OF_THE_FILE = frozenset({"schema_", "name", "title", "device_usd_per_hour", "notes", "sources"})
"""Keys of a file of terms that the cost of a chip does not depend on."""
HOURS_PER_YEAR = 8766.0
"""365.25 days."""
GB = 1e9


class Terms(Document):
    """Ownership constants (``phaze.ownership/1``)."""

    schema_: Annotated[Literal["phaze.ownership/1"], Field(alias="schema")]
    name: Name
    title: Text
    yield_clustering: Positive
    hbm_usd_per_gb: NonNegative
    package_usd: NonNegative
    lifetime_years: Positive
    utilisation: Share
    power_usage_effectiveness: Annotated[Positive, Field(ge=1)]
    electricity_usd_per_kwh: NonNegative
    grid_kgco2e_per_kwh: NonNegative
    fab_grid_kgco2e_per_kwh: NonNegative
    hbm_kgco2e_per_gb: NonNegative
    package_kgco2e: NonNegative
    device_usd_per_hour: PriceByName = Field(default_factory=FrozenTable)
    notes: Text | None = None
    sources: Sources = Field(default_factory=FrozenTable)

    def price(self, chip: str) -> float | None:
        """USD of a device hour of a chip, else that of ``any``."""
        return self.device_usd_per_hour.get(chip, self.device_usd_per_hour.get("any"))

    def as_read(self) -> dict[str, Any]:
        """The constants as certificates state them."""
        return {name: value for name, value in self if name not in OF_THE_FILE}


OWNERSHIP = Format("phaze.ownership/1", Terms, "prices, lifetime and carbon intensities")


def load_terms(text: str = "default", reader: Reader = read_text) -> Terms:
    """Ownership constants by preset name or path."""
    return read(Terms, "ownership", text, reader)


def lifetime_kwh(power_w: float, terms: Terms) -> float:
    """Energy of a device over its life, with what cooling and conversion take."""
    hours = terms.lifetime_years * HOURS_PER_YEAR
    return power_w / 1e3 * terms.utilisation * terms.power_usage_effectiveness * hours
