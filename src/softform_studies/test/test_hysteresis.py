"""The race of paper 004: losses, centre lines, memories, models and splits, on shapes whose truth is known."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_studies.hysteresis import losses, memories
from softform_studies.hysteresis.centre_lines import CentreLines
from softform_studies.hysteresis.curve_models import Felt, Known, memory_free
from softform_studies.hysteresis.decoder import Recipe, train_decoder
from softform_studies.hysteresis.friction_free import FrictionFreeRod, Parameters, identified
from softform_studies.hysteresis.judge import Carrier, Judge
from softform_studies.hysteresis.laboratory import Plan, Prepared
from softform_studies.hysteresis.ours import Process
from softform_studies.hysteresis.tasks import Runner, Task, tasks
from softform_studies.tendon_robot.shapes import RecordedShapes, straight_line

ROBOT = "tendon_robot"


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@cache
def lines() -> CentreLines:
    return CentreLines(load_robot(ROBOT).body)


@cache
def described_rod() -> FrictionFreeRod:
    return FrictionFreeRod(load_robot(ROBOT).body, lines(), Parameters.described())


@cache
def remembered(count: int = 90) -> tuple[RecordedShapes, np.ndarray]:
    """Shapes of the rod without friction behind a play of 1 mm, and their bends; clouds of all of its skin."""
    random = np.random.default_rng(0)
    paths = np.zeros((count, 5, 4))
    for row, step in np.ndindex(count, 5):
        paths[row, step, random.permutation(3)[:2]] = random.uniform(0.001, 0.008, 2)
    paths[: count // 3, :-1] = 0.0
    felt = paths[:, -1] + memories.plays(paths, ((0.0, 0.001),))[:, 0]
    bends = described_rod().bends(felt)
    line = lines().lines(bends)
    carried = lines().carried(line)
    some = np.stack([random.permutation(carried.shape[1])[:512] for _ in range(count)])
    clouds = np.take_along_axis(carried, some[..., None], axis=1) + 0.2 * random.standard_normal((count, 512, 3))
    part = np.repeat([0, 1, 2], count // 3)
    each = np.arange(count)
    cloud = clouds.astype(np.float32)
    return RecordedShapes(paths[:, -1], paths[:, :-1], part, each, cloud, line.points, line.directors, ROBOT), bends


def small() -> Prepared:
    """What a race on `remembered` shapes needs."""
    shapes, bends = remembered()
    plan = replace(Plan(), tests=15, tests_apart=15, ours=60, steps=300)
    return Prepared(shapes, bends, described_rod().bends(shapes.q_current)[:, None], described_rod(), plan, {})


def test_sinkhorns_iteration_ends_at_the_best_bijection():
    random = np.random.default_rng(0)
    first, second = 60.0 * random.standard_normal((2, 64, 3))
    distance = torch.as_tensor(np.linalg.norm(first[:, None] - second, axis=2))[None]
    one, other = torch.zeros(2, 1, 64, dtype=torch.float64)
    for _ in range(100):  # the potentials are kept, as between epochs
        plan, one, other = losses.transport(distance, one, other, 5)
    best = losses.earth_movers(first, second)
    assert 0.999 * best < float((plan * distance).sum()) < 1.04 * best  # the temperature costs up to 2 mm a point
    np.testing.assert_allclose(plan.sum(dim=1), 1.0, atol=1e-6)


def test_the_loss_is_chamfers_and_the_earth_movers_distance():
    random = np.random.default_rng(1)
    first, second = 60.0 * random.standard_normal((2, 48, 3))
    potentials, rows, points = losses.Potentials.of(1, 48), torch.zeros(1, dtype=torch.long), torch.arange(48)
    clouds = [torch.as_tensor(one, dtype=torch.float32)[None] for one in (first, second)]
    for _ in range(100):  # the potentials are kept, as between epochs
        chamfer_alone, blended = (
            float(losses.tendon_loss(clouds[0], clouds[1], rows, points, potentials, weight, 5))
            for weight in (0.0, 3.0)
        )
    assert chamfer_alone == pytest.approx(losses.chamfer(first, second) / 48, rel=1e-4)
    assert blended - chamfer_alone == pytest.approx(3.0 * losses.earth_movers(first, second) / 48, rel=0.04)


def test_two_samples_of_one_surface_are_apart_by_the_sampling_floor():
    random = np.random.default_rng(2)
    found = []
    for _ in range(20):
        first, second = 1000.0 * random.random((2, 1500, 3)) * [1.0, 1.0, 0.0]
        found.append(losses.chamfer(first, second) * 1e-6)
    assert np.mean(found) == pytest.approx(losses.whole_skin_floor_m2(1e6), rel=0.05)


def test_the_floor_of_what_cameras_see_is_that_of_the_area_that_they_see():
    random = np.random.default_rng(9)
    clouds = 1000.0 * random.random((20, 1024, 3)) * [0.5, 1.0, 0.0]
    assert losses.seen_floor_m2(clouds) == pytest.approx(losses.whole_skin_floor_m2(0.5e6), rel=0.08)


def test_a_straight_robots_stations_are_those_of_its_skin():
    points, directors = straight_line(load_robot(ROBOT), 1e3)
    line = lines().lines(np.zeros((1, lines().width)))
    np.testing.assert_allclose(line.points[0], points, atol=1e-9)
    np.testing.assert_allclose(line.directors[0], directors, atol=1e-12)


def test_moves_of_stations_are_differences():
    bends = 0.2 * np.random.default_rng(3).standard_normal((1, lines().width))
    _, moves, _ = lines()._placed(bends)
    for column in (0, 7, lines().width - 1):
        step = 1e-5 * np.eye(lines().width)[column]
        both = [lines().lines(bends + sign * step).points for sign in (1.0, -1.0)]
        np.testing.assert_allclose((both[0] - both[1]) / 2e-5, moves[..., column], atol=1e-6)


def test_a_metric_tells_how_far_bends_move_a_line():
    shapes, bends = remembered()
    metric, change = lines().metric(bends[:1]), 1e-3 * np.random.default_rng(3).standard_normal(bends.shape[1])
    off = lines().lines(bends[:1] + change).points - lines().lines(bends[:1]).points
    square = (off[0] ** 2).sum(axis=1)
    assert np.sum((change @ metric) ** 2) == pytest.approx(square.mean() + 0.3 * square[-1], rel=0.02)


def test_a_centre_line_is_fitted_to_a_cloud():
    shapes, bends = remembered()
    shapes, bends = shapes.of(np.arange(30, 38)), bends[30:38]
    begin = described_rod().bends(shapes.q_current)
    found = lines().lines(lines().fitted(shapes.cloud, begin))
    before = np.linalg.norm(lines().lines(begin).tip - shapes.tip, axis=1)
    off = np.linalg.norm(found.points - shapes.centre_line, axis=2)
    assert before.mean() > 3.0 and off.mean() < 0.15 * before.mean()
    chosen = lines().nearest(shapes.cloud, np.stack([begin, bends], axis=1))
    np.testing.assert_array_equal(chosen, bends)


@pytest.mark.long
def test_the_rod_without_friction_is_identified():
    body, shapes = load_robot(ROBOT).body, remembered()[0]
    configurations = shapes.q_current[:5]
    true = FrictionFreeRod(body, lines(), Parameters(np.array([0.4, 0.4, 0.0, 0.5, 0.3, -0.2, 0.0, 0.0])))
    clouds = lines().carried(lines().lines(true.bends(configurations))).astype(np.float32)[:, ::6]
    said: list[str] = []
    found = identified(body, lines(), configurations, clouds, said.append)

    def off(rod: FrictionFreeRod) -> float:
        truth = lines().lines(true.bends(configurations)).points
        return float(np.abs(lines().lines(rod.bends(configurations)).points - truth).max())

    assert off(found) < 0.25 * off(described_rod()) and said


@pytest.mark.long
def test_clouds_of_another_robot_or_in_metres_are_told():
    shapes = remembered()[0]
    told = ((3.0, "from the nearest rod of this kind"), (1e-3, "mm long, and the robot"))
    for foreign, words in ((scale * shapes.cloud[:4], words) for scale, words in told):
        with pytest.raises(SoftformError, match=words):
            identified(load_robot(ROBOT).body, lines(), shapes.q_current[:4], foreign, lambda line: None)


def test_plays_and_turning_points_keep_what_they_should():
    path = np.array([[0.0], [5.0], [2.0], [3.0], [1.5]])[None] * 1e-3
    behind = memories.plays(path, ((0.0, 0.001), (0.0, 0.01), (0.2, 0.0)))[0, :, 0]
    np.testing.assert_allclose(behind, [0.0010, 0.0035, 0.0003], atol=1e-12)
    np.testing.assert_allclose(memories.turning_points(path, 3)[0, :, 0], [3e-3, 2e-3, 5e-3])


@pytest.mark.parametrize("kind", ["by_current", "by_prior"])
def test_a_split_lets_no_configuration_leak(kind):
    random = np.random.default_rng(4)
    nominal = random.random((40, 4))
    present, before = np.tile(nominal, (3, 1)), nominal[random.integers(0, 40, 120)]
    learned, validated, judged = memories.split_rows(kind, present, before, 20, 0)
    asked = present if kind == "by_current" else before
    seen = {tuple(one) for one in asked[np.concatenate([learned, validated])]}
    assert 10 <= len(judged) <= 20 and not seen & {tuple(one) for one in asked[judged]}
    assert len(learned) + len(validated) + len(judged) == 120


def test_the_printed_split_leaks():
    present = np.tile(np.arange(40.0)[:, None], (3, 1))
    learned, _, judged = memories.split_rows("printed", present, present, 20, 0)
    assert len(judged) == 20 and set(present[judged, 0]) & set(present[learned, 0])


@pytest.mark.long
def test_a_play_is_found_by_its_few_parameters():
    """Behind a map that is known, from paths alone; a model without memory does not find it."""
    random = np.random.default_rng(5)
    paths = random.uniform(0.0, 0.01, (400, 5, 2))
    bends = 100.0 * (paths[:, -1] + memories.plays(paths, ((0.0, 0.002),))[:, 0])
    known = Known(paths[:300], bends[:300], paths[300:], bends[300:], np.eye(bends.shape[1]), 600)
    torch.manual_seed(0)
    found = Felt(lambda configurations: 100.0 * configurations, known)
    wrong = np.abs(found.bends(paths[300:]) - bends[300:]).mean()
    blind = np.abs(memory_free(known).bends(paths[300:]) - bends[300:]).mean()
    assert found.parameters == 4 and wrong < 0.1 * blind


def test_a_process_foretells_a_smooth_function():
    random = np.random.default_rng(6)
    features = random.uniform(-1.0, 1.0, (200, 3))
    targets = np.stack([np.sin(3.0 * features[:, 0]), features[:, 1] ** 2], axis=1)
    torch.manual_seed(0)
    process = Process(features[:150], np.array([0, 1, 2]), 2, targets[:150])
    assert np.abs(process.mean(features[150:]) - targets[150:]).mean() < 0.02


def test_a_cloud_is_carried_along():
    shapes, bends = remembered()
    line = lines().lines(bends)
    carrier = Carrier(line, shapes.cloud, shapes.eta)
    same = carrier.clouds_of(lines().lines(bends[:3]), shapes.eta[:3])
    np.testing.assert_allclose(same, shapes.cloud[:3], atol=1e-4)
    moved = carrier.clouds_of(lines().lines(bends[3:6]), shapes.eta[:3])
    judge = Judge(lines(), shapes.of(np.arange(3, 6)), bends[3:6, None])
    assert judge.of_line(lines().lines(bends[3:6]), moved)["surface_mm"] < 0.5


def test_a_decoder_needs_the_prior_configuration_where_the_shape_depends_on_it():
    random = np.random.default_rng(7)
    before, present = np.round(random.random((2, 400, 1)))
    centre = 30.0 * (present + before)[:, None]
    clouds = (centre + 2.0 * random.standard_normal((400, 32, 3))).astype(np.float32)
    both = np.concatenate([before, present], axis=1)
    recipe = Recipe.of_steps("tendon", 5.0, 120)
    wrong = {}
    for name, inputs in (("blind", present), ("told", both)):
        net = train_decoder((inputs[:300], clouds[:300]), (inputs[300:], clouds[300:]), recipe, lambda line: None)
        off = net.clouds(inputs[300:]).mean(axis=1) - clouds[300:].mean(axis=1)
        wrong[name] = np.linalg.norm(off, axis=1).mean()
    assert wrong["told"] < 0.5 * wrong["blind"]


@pytest.mark.long
def test_the_race_ranks_what_remembers_before_what_does_not():
    """On shapes behind a play, of few parameters: ours finds it, the rod without friction cannot."""
    prepared = small()
    runner = Runner(prepared)
    found = {name: runner(Task((name,), name))[1] for name in ("ours", "physics", "play")}
    assert set(found["ours"]) >= {"chamfer_m2", "rms_mm", "tip_mm", "surface_mm"}
    assert found["ours"]["tip_mm"] < 0.5 * found["physics"]["tip_mm"]
    assert found["play"]["parameters"] <= 10
    keys = [task.key for task in tasks(prepared)]
    assert len(set(keys)) == len(keys)
    needed = {"ours", "decoder", "physics", "no_hysteresis", "no_hysteresis_all_data", "play", "gru", "tcn"}
    assert needed <= {key[0] for key in keys}


@pytest.mark.long
def test_all_networks_learn_in_as_many_steps_whatever_they_learn_from():
    runner = Runner(replace(small(), plan=replace(small().plan, steps=50)))
    decoder = Task(("decoder",), "decoder", loss="chamfer")
    for task in (decoder, Task(("gru",), "gru"), Task(("gru",), "gru", most=20)):
        figures = runner(task)[1]
        assert figures["steps"] == 50, task
    assert figures["epochs"] == 50  # one batch of 14 is all that it learns from


def test_the_printed_schedule_is_the_papers():
    recipe = Recipe.printed("tendon", 1000.0, 5788)
    assert (recipe.steps, recipe.drop, recipe.patience) == (300 * 180, 100 * 180, 50 * 180)
    printed = {task.key for task in tasks(small()) if task.printed}
    assert ("as_printed", "decoder") in printed
    random = np.random.default_rng(8)
    configurations, clouds = random.random((80, 2)), random.random((80, 8, 3)).astype(np.float32)
    recipe = replace(Recipe.printed("mse", 0.0, 64), steps=400, patience=4, every=2)
    net = train_decoder((configurations[:64], clouds[:64]), (configurations[64:], clouds[64:]), recipe, print)
    assert net.steps < 400  # of noise nothing is learned that validation would confirm


@pytest.mark.long
def test_shapes_to_validate_by_count_among_those_that_are_learned_from():
    runner = Runner(small())
    learned, validated, _ = runner._rows(Task(("ours",), "ours", most=40))
    assert len(learned) == 28 and len(validated) == 12
    figures = runner(Task(("ours",), "ours", most=40))[1]
    assert figures["learned_from"] + figures["validated_by"] == 40


def test_lines_of_predicted_clouds_are_fitted_as_those_of_measured_ones():
    """Whoever predicts the measured clouds is judged by the very lines that curve models learn from."""
    shapes, bends = remembered()
    begin = described_rod().bends(shapes.q_current)
    candidates = np.stack([-2.0 * begin, begin, 0.5 * (begin + bends)], axis=1)
    judged = small().rows("printed")[2][:6]
    fitted = lines().fitted(shapes.cloud[judged], lines().nearest(shapes.cloud[judged], candidates[judged]))
    off = np.linalg.norm(lines().lines(fitted).points - shapes.centre_line[judged], axis=2)
    judge = Judge(lines(), shapes.of(judged), candidates[judged])
    figures = judge.of_clouds(shapes.cloud[judged])
    assert figures["rms_mm"] == pytest.approx(np.sqrt((off**2).mean()), abs=1e-3)
    alone = Judge(lines(), shapes.of(judged), candidates[judged][:, :1]).of_clouds(shapes.cloud[judged])
    assert figures["rms_mm"] < alone["rms_mm"]
