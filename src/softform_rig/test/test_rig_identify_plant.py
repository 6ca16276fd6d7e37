"""Identification of a plant from logs that a known plant made, as labs record them: gaps, headers, other periods."""

import json

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_core.plant import Plant, Pump, load_plant
from softform_rig.channels import Channels
from softform_rig.cli_identify_plant import identify_plant
from softform_rig.control import DEFAULT_THRESHOLD, PUMP_DEFLATE, PUMP_INFLATE, proportional_control
from softform_rig.identify_plant import (
    Drive,
    as_plant,
    errors,
    identify,
    law_agreement,
    not_identified,
    quiet_noise,
    relative_volume,
    rmse,
    simulate_loop,
)
from softform_rig.plant_log import FULL_SCALE, ROW_PERIOD, PlantLog, read_plant_log
from softform_rig.plant_report import report_plant, step_errors

KNOWN = Plant(
    inflation=Pump(rate=70.0, stall=100.0, dead_duty=0.05, spin_up=0.03),
    deflation=Pump(rate=50.0, stall=75.0, dead_duty=0.1, spin_up=0.02),
    leak_time=15.0, hold_time=4.0, vent_time=0.2, sensor_noise=0.0,
)  # fmt: skip
LEVELS = [10.0, 30.0, 50.0, 70.0, 40.0, 10.0, -10.0, -30.0, -50.0, -20.0, 5.0]
DUTIES, PERCENT = (1 / FULL_SCALE,) * 2, (100 / FULL_SCALE,) * 2
HEADER = "measured,target,inflation,deflation,rate"


def recorded(
    plant: Plant = KNOWN, row: float = 0.04, noise: float = 0.0, targets: np.ndarray | None = None
) -> PlantLog:
    targets = np.repeat(LEVELS, 60) if targets is None else targets
    measured = simulate_loop(0.0, targets, plant.coefficients(), DEFAULT_THRESHOLD, row)
    commands = np.zeros((len(targets), 2))
    for index, (target, reading) in enumerate(zip(targets, measured, strict=True)):
        pump, duty, _ = proportional_control(target, reading, DEFAULT_THRESHOLD)
        commands[index] = duty * (pump == PUMP_INFLATE), duty * (pump == PUMP_DEFLATE)
    measured = measured + noise * np.random.default_rng(0).standard_normal(len(measured))
    return PlantLog("known", row, measured, targets, commands[:, 0], commands[:, 1])


def as_lines(log: PlantLog) -> list[str]:
    columns = (log.measured, log.targets, log.inflate * FULL_SCALE, -log.deflate * FULL_SCALE)
    return [",".join(f"{value:.6e}" for value in row) + ",0.0" for row in zip(*columns, strict=True)]


def test_a_known_plant_is_found_again() -> None:
    log = recorded(noise=0.03)
    plant, drive = identify([log], start=load_plant())
    assert drive.lead == 0
    assert rmse(errors(log, plant.coefficients(), drive)) < 0.25
    assert plant.vent_time == pytest.approx(KNOWN.vent_time, rel=0.15)
    assert plant.inflation.rate == pytest.approx(KNOWN.inflation.rate, rel=0.15)
    assert plant.deflation.stall == pytest.approx(KNOWN.deflation.stall, rel=0.25)


@pytest.mark.parametrize("volume", [0.5, 1.0, 2.5])
def test_the_volume_of_another_chamber_is_found(volume: float) -> None:
    scaled = KNOWN.coefficients() * np.array([1.0 / volume, 1.0, 1.0, 1.0] * 2 + [volume] * 3)
    log = recorded(as_plant(scaled, 0.0), noise=0.03)
    found, error = relative_volume(log, KNOWN, Drive(True, 0))
    assert found == pytest.approx(volume, rel=0.02) and error < 0.2


@pytest.mark.long
def test_commands_of_another_law_drive_the_plant_themselves() -> None:
    """A board whose pumps get a fifth of what the known law gives them."""
    channel, targets, row = Channels(KNOWN, 1), np.repeat(LEVELS, 60), 0.04
    readings, commands = np.zeros(len(targets)), np.zeros((len(targets), 2))
    for index, target in enumerate(targets):
        readings[index] = channel.pressure[0]
        pump, duty, channel.vent[0] = proportional_control(target, readings[index], DEFAULT_THRESHOLD)
        commands[index] = channel.inflate[0], channel.deflate[0] = (
            0.2 * duty * (pump == PUMP_INFLATE),
            0.2 * duty * (pump == PUMP_DEFLATE),
        )
        channel.advance(row)
    log = PlantLog("weak", row, readings, targets, commands[:, 0], commands[:, 1])
    assert law_agreement(recorded()) == 1.0 and law_agreement(log) < 0.9
    plant, drive = identify([log])
    assert drive == Drive(closed_loop=False, lead=0)
    assert rmse(errors(log, plant.coefficients(), drive)) < 0.15
    assert plant.inflation.rate == pytest.approx(KNOWN.inflation.rate, rel=0.05)


def test_what_was_never_excited_or_ends_on_a_bound_is_not_identified() -> None:
    """A recording without deflation and without a step down says nothing of the deflation pump and the valve."""
    upward = recorded(targets=np.repeat([10.0, 20.0, 40.0, 60.0], 90))
    unidentified = not_identified([upward], KNOWN, Drive(lead=0))
    pump = {f"deflation.{part}" for part in ("rate", "stall", "dead_duty", "spin_up")}
    assert pump | {"vent_time"} == set(unidentified)
    assert all("never excited" in reason for reason in unidentified.values())
    assert not not_identified([upward, recorded()], KNOWN, Drive(lead=0))
    bound = KNOWN.model_copy(update={"leak_time": 0.5})
    assert "bound (0.5 … 100)" in not_identified([recorded()], bound, Drive(lead=0))["leak_time"]


def test_gaps_in_the_readings_do_not_count() -> None:
    log = recorded()
    measured = log.measured.copy()
    measured[50:80] = np.nan
    gappy = PlantLog("gappy", log.row_period, measured, log.targets, log.inflate, log.deflate)
    found = errors(gappy, KNOWN.coefficients(), Drive(lead=0))
    assert np.isnan(found[50:80]).all() and rmse(found) < 1e-9
    assert [step.rmse for step in step_errors(gappy, KNOWN, Drive(lead=0))] == [0.0] * len(LEVELS)


def test_rows_slower_than_control_hold_several_ticks() -> None:
    fine = recorded(row=1.0 / 30.0)
    coarse = PlantLog(
        "coarse", 0.1, *(column[::3] for column in (fine.measured, fine.targets, fine.inflate, fine.deflate))
    )
    assert rmse(errors(coarse, KNOWN.coefficients(), Drive(lead=0))) < 1e-9


def test_a_trajectory_is_reported_in_pieces() -> None:
    log = recorded(targets=20.0 + 15.0 * np.sin(np.arange(450) * 0.05))
    assert [step.rows for step in step_errors(log, KNOWN, Drive(lead=0))] == [100, 100, 100, 150]


def test_a_log_as_labs_have_it_is_read(tmp_path) -> None:
    log = recorded(noise=0.05)
    lines = as_lines(log)
    lines[100] = "nan,nan,nan,nan,nan"
    lines[200] = "999," + lines[200].split(",", 1)[1]
    lines[310] = "12.0,1"
    file = tmp_path / "log.csv"
    file.write_bytes(("\ufeff" + "\r\n".join([HEADER, *lines]) + "\r\n12.0,10.0,20").encode())
    read = read_plant_log(file, 0.04)
    assert len(read) == len(log) and read.row_period == 0.04
    assert np.flatnonzero(np.isnan(read.measured)).tolist() == [100, 200, 310]
    assert read.lost_rows == 3
    np.testing.assert_allclose(read.targets, log.targets)
    np.testing.assert_allclose(np.delete(read.deflate, [100, 310]), np.delete(log.deflate, [100, 310]), atol=1e-6)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no row of numbers, in 0 lines"),
        (HEADER, f"no row of numbers, in 1 lines; the first is '{HEADER}'"),
        ("\x7fELF\x02\x01\x00", "no text"),
        ("1,2,3,4,5\n" * 20, "valid reading in 20 of 20 rows"),
        ("1,2,3\n" * 200, "no column 'deflation' among measured, target, inflation"),
        ("1,2,3,4,5,6\n" * 200, "no header above its 6 columns"),
        ("p,setpoint,inflate,deflate\n" + "1,10,0,0\n" * 100, "no column 'measured' among p, setpoint"),
        ("measured,sensor,target,inflation,deflation\n" + "1,1,10,0,0\n" * 100, "columns measured and sensor, either"),
        (
            "measured [V],target,inflation,deflation\n" + "1,10,0,0\n" * 100,
            r"unit of 'measured \[V\]' .*, v, is not known",
        ),
        (HEADER + "\n" + "0,003,10,0,4090,0,-0,0,0,0\n" * 100, "names 5 columns, line 2 has 10 cells.*decimal commas"),
        ("measured,target,inflation,deflation\n" + "101.3,111.3,4090,0\n" * 100, "111.3 kPa; .*±100 kPa gauge"),
        ("nan,10,0,0,0\n1,10,0,0,0\n" * 10 + "nan,10,0,0,0\n" * 100, "valid reading"),
        ("1,nan,0,0,0\n" * 100, "no target"),
        ("t,measured,target,inflation,deflation\n" + "12:00,1,10,0,0\n" * 100, "do not go on evenly"),
    ],
)
def test_what_is_no_log_is_rejected(tmp_path, content: str, why: str) -> None:
    file = tmp_path / "log.csv"
    file.write_text(content)
    with pytest.raises(SoftformError, match=why):
        read_plant_log(file)
    with pytest.raises(SoftformError, match="cannot be read"):
        read_plant_log(tmp_path / "none.csv")


@settings(max_examples=30)
@given(st.binary(max_size=400))
def test_no_bytes_crash_the_reader(tmp_path_factory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("logs") / "log.csv"
    file.write_bytes(data)
    with pytest.raises(SoftformError):
        read_plant_log(file)


@pytest.mark.parametrize("spare", [True, False])
def test_the_fifth_column_may_be_missing_and_a_sensor_begin_late(tmp_path, spare: bool) -> None:
    log = recorded()
    lines = as_lines(log) if spare else [line.rsplit(",", 1)[0] for line in as_lines(log)]
    lines[:30] = [line.replace(line.split(",")[0], "nan", 1) for line in lines[:30]]
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines))
    read = read_plant_log(file, 0.04)
    assert (len(read), read.lost_rows) == (len(log) - 30, 30)
    np.testing.assert_allclose(read.measured, log.measured[30:], atol=1e-5)


@pytest.mark.long
def test_a_sensor_that_dies_leaves_nothing_to_check_on(tmp_path) -> None:
    log = recorded()
    measured = log.measured.copy()
    measured[400:] = np.nan
    said: list[str] = []
    dead = PlantLog("dead", log.row_period, measured, log.targets, log.inflate, log.deflate)
    _, report = report_plant([dead], 0, said.append)
    assert report["logs"][0]["held_out_rmse_kpa"] is None and report["logs"][0]["rmse_kpa"] < 0.5
    assert not any("WARNING" in line for line in said)


@pytest.mark.parametrize(
    ("order", "factors", "header"),
    [
        ((0, 1, 2, 3, 4), (1, 1, 1, 1, 1), "measured,target,inflation,deflation,rate"),
        ((5, 0, 1, 2, 3), (1, 1, 1, 1, 1), "time_s,measured_kPa,target_kPa,inflation,deflation"),
        ((3, 2, 1, 0, 5), (1, 1, 1, 1, 1000), "Deflation;Inflation;Target pressure;Measured pressure;Time (ms)"),
        ((1, 0, 3, 2), (1000, 1000, -1, 1), "Set point, Pa\tSensor, Pa\tdeflate\tinflate"),
        ((0, 1, 2, 3), (0.14503774, 0.14503774, *DUTIES), "measured_psi,target_psi,inflation,deflation"),
        ((0, 1, 5, 2, 3), (1000, 10, 1, 1, 1), "measured,target,time,inflation,deflation\nPa,mbar,s,,counts"),
        ((0, 1, 2, 3), (0.01, 10, *PERCENT), "actual[bar] desired[mbar] inflation_% deflation_%"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("comma", [False, True])
def test_columns_are_found_by_their_names_and_units(tmp_path, order, factors, header, comma) -> None:
    log = recorded()
    times = 0.05 * np.arange(len(log))
    columns = (log.measured, log.targets, log.inflate * FULL_SCALE, -log.deflate * FULL_SCALE, 0.0 * times, times)
    table = np.stack([columns[place] for place in order], axis=1) * factors
    delimiter = next(mark for mark in (";", "\t", " " if "[" in header else ",") if mark in header)
    if comma and delimiter == ",":
        header, delimiter = header.replace(",", ";"), ";"
    text = "\n".join([header, *(delimiter.join(f"{value:.9f}" for value in row) for row in table)])
    (tmp_path / "log.csv").write_text(text.replace(".", ",") if comma else text)
    read = read_plant_log(tmp_path / "log.csv")
    for found, wanted in ((read.measured, log.measured), (read.targets, log.targets)):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    for found, wanted in ((read.inflate, log.inflate), (read.deflate, log.deflate)):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert read.row_period == pytest.approx(0.05 if 5 in order else ROW_PERIOD)


def test_there_is_no_plant_where_commands_do_not_fit(monkeypatch, tmp_path) -> None:
    # The search is tested above; here a fit takes no time.
    monkeypatch.setattr("softform_rig.plant_report.identify", lambda logs, seed, start=None: (KNOWN, Drive(lead=0)))
    log, said = recorded(), []
    swapped = PlantLog("swapped", log.row_period, log.targets, log.measured, log.inflate, log.deflate)
    with pytest.raises(SoftformError, match="the commands of swapped do not fit its pressures"):
        report_plant([swapped], 0, said.append)
    assert any("WARNING: only in" in line for line in said)
    file, output = tmp_path / "log.csv", tmp_path / "plant.yaml"
    file.write_text("\n".join(as_lines(swapped)))
    result = CliRunner().invoke(identify_plant, [str(file), "--output", str(output)])
    assert isinstance(result.exception, SoftformError) and not output.exists()
    # Another law's commands fit by themselves, and a board's own may be recorded late.
    fits = PlantLog("fits", log.row_period, log.measured, log.targets, np.roll(log.inflate, 1), np.roll(log.deflate, 1))
    assert law_agreement(fits) < 0.9
    report_plant([fits], 0, said.append)


def test_noise_estimate_ignores_steps_and_drift() -> None:
    targets = np.repeat([0.0, 5.0, 10.0], 400)
    drift = targets + np.linspace(0.0, 2.0, len(targets))
    noisy = drift + 0.05 * np.random.default_rng(1).standard_normal(len(targets))
    nothing = np.zeros(len(targets))
    assert quiet_noise(PlantLog("", ROW_PERIOD, noisy, targets, nothing, nothing)) == pytest.approx(0.05, rel=0.15)


def test_the_command_prints_errors_and_writes_a_plant(tmp_path, monkeypatch) -> None:
    # The search is tested above; here a fit takes no time.
    monkeypatch.setattr("softform_rig.plant_report.identify", lambda logs, seed, start=None: (KNOWN, Drive(lead=0)))
    file, output, figures = tmp_path / "log.csv", tmp_path / "plant.yaml", tmp_path / "figures.json"
    file.write_text("\n".join(as_lines(recorded())))
    arguments = [str(file), str(file), "--row-period", "0.04", "--output", str(output), "--json", str(figures)]
    result = CliRunner().invoke(identify_plant, arguments)
    assert result.exit_code == 0, result.output
    assert f"{LEVELS[0]:7.2f} {LEVELS[1]:7.2f}" in result.output
    assert "RMSE 0.0 kPa" in result.output
    assert load_plant(output) == KNOWN
    report = json.loads(figures.read_text())
    assert [step["target"] for step in report["logs"][0]["steps"]] == LEVELS
    assert yaml.safe_load(output.read_text())["plant"] == report["plant"]
    rejected = CliRunner().invoke(identify_plant, [str(file), "--row-period", "1", "--row-period", "2"])
    assert isinstance(rejected.exception, SoftformError)


def test_what_was_not_fitted_is_listed_apart(monkeypatch) -> None:
    fitted = []
    monkeypatch.setattr(
        "softform_rig.plant_report.identify",
        lambda logs, seed, start=None: (fitted.append([len(log) for log in logs]), (KNOWN, Drive(lead=0)))[1],
    )
    _, report = report_plant([recorded()], 0, lambda _: None)
    assert fitted == [[360], [660], [660]], "first the first steps within 60 % of the rows, then all"
    assert report["logs"][0]["held_out_rmse_kpa"] is not None
