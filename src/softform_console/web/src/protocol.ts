// Made by `python -m softform_console.types_for_page`; change softform_console/protocol.py instead.

export const VERSION = 2
export const BEAT_SECONDS = 0.2
export const DEAD_MAN_SECONDS = 0.5

/** An actuator: its SI unit, limits, value at rest and slew rate, unit/s. */
export interface Actuator {
  name: string
  unit: string
  low: number
  high: number
  safe: number
  slew: number
}

/** Manual mode: a value for each actuator, in its unit, within its limits; ends with `release`. */
export interface Actuators {
  type: 'actuators'
  robot?: number
  epoch: string
  stamp: number
  values: number[]
}

/** Answer the question of that number of a job, with a line of text, which may be empty. */
export interface AnswerJob {
  type: 'answer_job'
  stamp: number
  id: string
  number: number
  text: string
}

/** Sent every `beat` s of hello; `t` comes back in `beat`, so that the page knows how long a round takes. */
export interface Beat {
  type: 'beat'
  t: number
}

/** Cancel the goal or program that runs; the robot holds where it is. */
export interface Cancel {
  type: 'cancel'
  robot?: number
}

/** Cancel a job: it is asked to end, as by Ctrl-C, and a while later made to. */
export interface CancelJob {
  type: 'cancel_job'
  id: string
}

/** Where the robot touches something by its model, m in its frame, and the force on it: an arrow from place to end.
 *
 * `name` is that of the obstacle, or `itself`; `share` the force over the largest one told (0 … 1).
 */
export interface Contact {
  name: string
  newtons: number
  points: [number, number, number][]
  place: [number, number, number]
  end: [number, number, number]
  share: number
}

/** What the driver says; `age` s since it said it. `epoch` goes back with `reset`. `all_at_rest`: as measured.
 *
 * `stopped`: it is at fault for nothing but a stop by request. `stands_still`: arms that hold an object, which brake
 * where others come to rest, do so and stand still, as measured.
 */
export interface DriverInfo {
  state: 'safe' | 'running' | 'fault' | 'offline' | 'holding' | 'making_safe' | 'silent'
  reason: string
  holder: string
  faults: string[]
  warnings: string[]
  epoch: string
  age: number
  all_at_rest: boolean
  stands_still: boolean
  stopped: boolean
}

/** Show the shape that is predicted at values of the actuators, as a mesh that is a preview; null: no more. */
export interface Foresee {
  type: 'foresee'
  robot?: number
  values: number[] | null
}

/** Where a frame of the robot is, m and quaternion x, y, z, w in the robot's frame. */
export interface FramePlace {
  name: string
  place: [number, number, number]
  rotation: [number, number, number, number]
}

/** Lead the robot there and back until what it did before cannot matter. */
export interface GoHome {
  type: 'go_home'
  robot?: number
  epoch: string
  stamp: number
}

/** Progress of the goal that runs; errors m. */
export interface GoalProgress {
  type: 'goal'
  robot: number
  target: number
  stage: string
  iteration: number
  round: number
  mean_error: number | null
  max_error: number | null
}

/** End of a goal; errors m, predicted and measured. `error_code` 0: reached. */
export interface GoalResult {
  type: 'goal_result'
  robot: number
  target: number
  error_code: number
  text: string
  actuators: number[]
  mean_error: number | null
  max_error: number | null
  measured_mean_error: number | null
  measured_max_error: number | null
  solve_time: number
  iterations: number
}

/** First message on /control. */
export interface Hello {
  type: 'hello'
  version: number
  softform: string
  beat: number
  dead_man: number
  operator: 'you' | 'other' | 'none'
  robots: RobotInfo[]
}

/** A job; times s since the epoch. `done` 0 … 1 and `left` s are of the step that it is at, null if not said.
 *
 * `files` are what it made, paths of GET /runs. `question` waits for an `answer_job`; null if none does.
 * `lost`: the console that started it ended, and it with that.
 */
export interface Job {
  id: string
  command: string
  state: 'running' | 'ending' | 'done' | 'failed' | 'cancelled' | 'lost'
  started: number
  ended: number | null
  step: string
  done: number | null
  left: number | null
  text: string
  files: string[]
  question: Question | null
}

/** A command that can be a job; `moves`: it moves the robot. */
export interface JobKind {
  command: string
  about: string
  moves: boolean
  options: JobOption[]
}

/** Answer to GET /jobs: the newest first; `log` are the last lines of the newest. */
export interface JobList {
  kinds: JobKind[]
  jobs: Job[]
  log: string[]
}

/** An option of a job, or its argument where the name is empty; `default` is what it is without. */
export interface JobOption {
  name: string
  kind: 'number' | 'text' | 'choice' | 'flag'
  choices: string[]
  default: string
  help: string
}

/** A trained model: its folder, and its card in Markdown. */
export interface Model {
  name: string
  card: string
}

/** A motion that was planned: values of the actuators at each waypoint, and its time, s after the start.
 *
 * `clearances` and `margins` m of a motion past obstacles: how far the surface is from them at each waypoint, and how
 * far it must be. `path` and `errors` m of a path: where its point is wanted at each waypoint, and how far off it is
 * predicted to be.
 */
export interface Motion {
  type: 'motion'
  robot: number
  id: number
  actuators: number[][]
  times: number[]
  clearances: number[]
  margins: number[]
  path: [number, number, number][]
  errors: number[]
}

/** How planning or motion goes, in a line; `waypoint` is the one that was reached last.
 *
 * outdated: obstacles or model were changed since the motion was planned, which is not run any more.
 */
export interface MotionState {
  type: 'motion_state'
  robot: number
  stage: 'planning' | 'planned' | 'moving' | 'reached' | 'failed' | 'outdated'
  waypoint: number
  text: string
}

/** Something to be read, with what to do about it; `about` is the type of the message that it answers, if any. */
export interface Notice {
  type: 'notice'
  level: 'info' | 'warning' | 'error'
  about: string
  text: string
}

/** The newest target, which comes as a scene frame, too; `poses` are those of which the model makes it.
 *
 * `off` m is the largest distance of a point from where it is wanted, null without points; `stress` Pa the largest of
 * the model, `stress_limit` that of a goal that names none, null for none.
 */
export interface ObjectPreviewed {
  type: 'object_previewed'
  robot: number
  id: number
  poses: number[]
  off: number | null
  stress: number
  stress_limit: number | null
}

/** What the robot is to keep clear of: a box along the axes of its frame, or the ball (ellipsoid) in that; m. */
export interface Obstacle {
  kind: 'ball' | 'box'
  centre: [number, number, number]
  edges: [number, number, number]
}

/** All obstacles, in place of those before; they count for motions that are planned from then on. */
export interface Obstacles {
  type: 'obstacles'
  robot?: number
  obstacles: Obstacle[]
}

/** Become the operator, if there is none, or cease to be. */
export interface Operate {
  type: 'operate'
  take: boolean
}

/** What can be asked for: a patch or a skin, picked at (u, v), or a frame. */
export interface Output {
  name: string
  kind: 'patch' | 'frame' | 'skin'
  dimensions: number
}

/** Plan a motion past the obstacles to an uploaded target, or to values of the actuators; moves nothing.
 *
 * `clearance` m must stay between surface and obstacles, beside the model's uncertainty.
 */
export interface PlanMotion {
  type: 'plan_motion'
  robot?: number
  target?: number | null
  pose?: 'fixed' | 'free' | 'place'
  values?: number[] | null
  clearance?: number
}

/** Plan a motion that leads a point of the robot, by patch and (u, v) or by frame, along places, m; moves nothing.
 *
 * It lasts `seconds`, or longer where the robot is not so fast. Obstacles are not looked at.
 */
export interface PlanPath {
  type: 'plan_path'
  robot?: number
  output: string
  u?: number
  v?: number
  places: [number, number, number][]
  seconds: number
}

/** A point of the robot, by patch and (u, v) or by frame, and where it is wanted, m in the robot's frame. */
export interface Point {
  id: number
  output: string
  u?: number
  v?: number
  target: [number, number, number]
  weight?: number
}

/** All points that are wanted, in place of those before; the servo follows with `optimise`, else the robot holds. */
export interface Points {
  type: 'points'
  robot?: number
  epoch: string
  stamp: number
  points: Point[]
  optimise?: boolean
}

/** Show an uploaded target as it would be meant, with the share that lies beside the robot; moves nothing. */
export interface Preview {
  type: 'preview'
  robot?: number
  target: number
  pose: 'fixed' | 'free' | 'place'
}

/** Show the target that poses of the grippers make, or points of the object that are led; moves nothing.
 *
 * With points the grippers leave `poses` as little as those need. In place of what was asked for before.
 */
export interface PreviewObject {
  type: 'preview_object'
  robot?: number
  poses: number[]
  points?: Point[]
}

/** The target of a preview, which comes as a scene frame too.
 *
 * `beside` is the share (0 … 1) of it that lies beside the robot; null where that is not known, as with pose free.
 */
export interface Previewed {
  type: 'previewed'
  robot: number
  target: number
  pose: 'fixed' | 'free' | 'place'
  beside: number | null
  text: string
}

/** Read a program (`softform_client.program`), which all pages then see, or run what was read as it stands here. */
export interface Program {
  type: 'program'
  robot?: number
  epoch: string
  stamp: number
  text: string
  run?: boolean
}

/** A program that was read; `fault` says why it cannot be run. */
export interface ProgramRead {
  type: 'program_read'
  robot: number
  text: string
  title: string
  rows: ProgramRow[]
  fault: string
}

/** A block of a program: how many others it lies in, its number, such as `2.1`, its line, and what it does. */
export interface ProgramRow {
  depth: number
  number: string
  line: number
  title: string
}

/** How the program goes: what the block of a row does or did; at its end, where it ended, if not done, and why. */
export interface ProgramState {
  type: 'program_state'
  robot: number
  row: number | null
  text: string
  ended: '' | 'done' | 'stopped' | 'failed'
}

/** Answer to a beat. */
export interface Pulse {
  type: 'beat'
  t: number
}

/** What a job asks; `number` goes back with the answer. `choices` are words that it takes, if it says so. */
export interface Question {
  number: number
  text: string
  choices: string[]
}

/** Bring the robot to an uploaded target. */
export interface Reach {
  type: 'reach'
  robot?: number
  epoch: string
  stamp: number
  target: number
  pose: 'fixed' | 'free' | 'place'
  mode: 'plan' | 'move' | 'verify' | 'closed_loop'
  partial?: boolean
  accept_unreachable?: boolean
}

/** A bag below the folder of runs; `seconds` and `messages` null where it was not closed. */
export interface Recording {
  path: string
  recorded: number
  seconds: number | null
  messages: number | null
  files: RunFile[]
}

/** End whatever this page moves, and let go of what is held: the driver makes the robot safe. */
export interface Release {
  type: 'release'
  robot?: number
}

/** Clear the faults that the page has seen: those of this epoch of the driver. */
export interface Reset {
  type: 'reset'
  robot?: number
  epoch: string
  stamp: number
}

/** A robot; `index` is that of the other messages and of scene frames. `size` m is its largest dimension.
 *
 * `holds`: arms that hold an object, which is what is shown, and shaped; `size` is the object's then.
 */
export interface RobotInfo {
  index: number
  name: string
  title: string
  frame: string
  body: string
  size: number
  actuators: Actuator[]
  outputs: Output[]
  has_surface: boolean
  holds: boolean
}

/** A robot now; values in the actuators' order and units, null where not known; `measured` also at rest.
 *
 * `steering` is what this console does with it, for whichever page is the operator. `points` are those in force,
 * `obstacles` those that motions are planned past. `model` is the kind that predicts and solves, empty where nodes
 * differ or do not say; `models` are those that there are. `past_known`: what the robot did before the driver began to
 * measure cannot matter any more.
 */
export interface RobotState {
  robot: number
  driver: DriverInfo
  servo: ServoInfo | null
  commanded: number[] | null
  measured: number[] | null
  settled: boolean
  past_known: boolean
  frames: FramePlace[]
  contacts: Contact[]
  steering: 'none' | 'points' | 'held' | 'manual' | 'goal'
  points: Point[]
  obstacles: Obstacle[]
  model: string
  models: string[]
}

/** The robots, where another one has come since hello. */
export interface Robots {
  type: 'robots'
  robots: RobotInfo[]
}

/** A file to be had by GET /runs/PATH, with its size in bytes. */
export interface RunFile {
  path: string
  size: number
}

/** Run the motion that was planned last, by its number. */
export interface RunMotion {
  type: 'run_motion'
  robot?: number
  epoch: string
  stamp: number
  motion: number
}

/** What the servo says; errors m, latency s; null where it says nothing. */
export interface ServoInfo {
  state: 'off' | 'tracking' | 'holding' | 'yielded'
  reason: string
  mean_error: number | null
  max_error: number | null
  latency: number | null
  converged: boolean
  commands: number
  iterations: number
  deadlines_missed: number
}

/** Bring the object into the target that was previewed last, by its number; 0: the usual number of looks or stress.
 *
 * `iterations` are the looks at most, `stress_limit` Pa that of the guard.
 */
export interface ShapeObject {
  type: 'shape_object'
  robot?: number
  epoch: string
  stamp: number
  preview: number
  iterations?: number
  stress_limit?: number
}

/** How shaping goes, or ended: m and Pa as of the last look, null where not known.
 *
 * `reported_rms` is what the controller believes; `true_rms` and `true_max` are of the true object, on a rig.
 */
export interface Shaping {
  type: 'shaping'
  robot: number
  stage: 'looking' | 'moving' | 'ended' | 'failed'
  look: number
  reported_rms: number | null
  true_rms: number | null
  true_max: number | null
  stress: number | null
  text: string
}

/** Answer to GET /shelf: the newest recordings first; the robot's models, and what the stack uses of them. */
export interface Shelf {
  recordings: Recording[]
  models: Model[]
  in_use: string
  to_switch: string
}

/** Start a command as a job: one of `JobList.kinds`, or `replay` with the path of a recording.
 *
 * `arguments` are its words; the epoch counts for what moves the robot.
 */
export interface StartJob {
  type: 'start_job'
  epoch: string
  stamp: number
  command: string
  arguments: string[]
}

/** Everything that changes, at 10 Hz; `stamp` s since the epoch, which goes back with what is asked for. */
export interface State {
  type: 'state'
  stamp: number
  operator: 'you' | 'other' | 'none'
  clients: number
  robots: RobotState[]
}

/** Stop every robot; anybody may. */
export interface Stop {
  type: 'stop'
}

/** How a stop goes, to all pages; `seconds` since it was asked for.
 *
 * asked, then acknowledged (the driver has told each device), then confirmed (each is measured at rest), or else
 * unconfirmed, with the reason.
 */
export interface Stopped {
  type: 'stopped'
  stage: 'asked' | 'acknowledged' | 'confirmed' | 'unconfirmed'
  message: string
  seconds: number
}

/** Answer to POST /targets: `size` m of its box; `text` says what is doubtful, such as the unit. */
export interface Uploaded {
  id: number
  name: string
  vertices: number
  triangles: number
  size: [number, number, number]
  text: string
}

/** Predict and solve with another kind of model, one of `RobotState.models`, from now on. */
export interface UseModel {
  type: 'use_model'
  robot?: number
  model: string
}

export type ToServer =
  | Beat
  | Operate
  | Points
  | Actuators
  | Release
  | Preview
  | Reach
  | Obstacles
  | PlanMotion
  | PlanPath
  | RunMotion
  | GoHome
  | Foresee
  | PreviewObject
  | ShapeObject
  | Program
  | Cancel
  | Reset
  | StartJob
  | CancelJob
  | AnswerJob
  | UseModel
  | Stop

export type FromServer =
  | Hello
  | Robots
  | Pulse
  | State
  | Stopped
  | Notice
  | Previewed
  | GoalProgress
  | GoalResult
  | Motion
  | MotionState
  | ObjectPreviewed
  | Shaping
  | ProgramRead
  | ProgramState
