/** What the operator does with obstacles, paths and motions. */

import { send } from './control'
import { evenly, forgetMotion, obstaclesOf, useMotion, valuesAt } from './motion'
import { pacer } from './pace'
import { boundsOf } from './scene/picture'
import { mayOperate } from './steering'
import type { Obstacle } from './protocol'
import { note, robotInfo, useStore, valuesNow } from './store'

/** Least time between two sets of obstacles, or shapes that are foreseen, ms. */
const PERIOD = 50
/** Size of a new obstacle, and its distance from the robot, in sizes of that. */
const SHARE = 0.15
/** Most places of a path that is drawn. */
const PLACES = 25

const placing = pacer(PERIOD)
const looking = pacer(PERIOD)

function setObstacles(obstacles: Obstacle[], chosen: number | null): void {
  if (!mayOperate()) return
  useMotion.setState({ obstacles, chosen })
  placing(() => send({ type: 'obstacles', robot: useStore.getState().robot, obstacles }))
}

function obstaclesNow(): Obstacle[] {
  return obstaclesOf(useStore.getState(), useMotion.getState())
}

/** Place a new obstacle above the robot. */
export function addObstacle(kind: Obstacle['kind']): void {
  const size = robotInfo(useStore.getState())?.size ?? 0.3
  const { min, max } = boundsOf(useStore.getState())
  const edge = SHARE * size
  const before = obstaclesNow()
  const centre: Obstacle['centre'] = [0.5 * (min.x + max.x), 0.5 * (min.y + max.y), max.z + edge]
  setObstacles([...before, { kind, centre, edges: [edge, edge, edge] }], before.length)
}

/** Change an obstacle. */
export function changeObstacle(index: number, change: Partial<Obstacle>): void {
  setObstacles(
    obstaclesNow().map((one, k) => (k === index ? { ...one, ...change } : one)),
    index,
  )
}

/** Take an obstacle away. */
export function removeObstacle(index: number): void {
  setObstacles(obstaclesNow().toSpliced(index, 1), null)
}

/** Keep the pose of now, to come back to it. */
export function keepPose(): void {
  useMotion.setState({ kept: valuesNow(useStore.getState()) })
}

/** Plan a motion past the obstacles, to the target or the pose that was kept, so many m clear of them. */
export function planMotion(to: 'target' | 'kept', clearance: number): void {
  if (!mayOperate()) return
  const { robot, target } = useStore.getState()
  const goal =
    to === 'kept' ? { values: useMotion.getState().kept } : { target: target.uploaded?.id ?? null, pose: target.pose }
  look(null)
  forgetMotion()
  send({ type: 'plan_motion', robot, clearance, ...goal })
}

/** Plan a motion along the path that was drawn. */
export function planPath(): void {
  const { stroke, seconds } = useMotion.getState()
  look(null)
  forgetMotion()
  if (!stroke || stroke.places.length < 2) {
    note('info', 'Press a point of the robot, and draw its path before you let go.')
    return
  }
  useMotion.setState({ stroke })
  const { robot } = useStore.getState()
  send({ type: 'plan_path', robot, seconds, ...stroke, places: evenly(stroke.places, PLACES) })
}

/** Show the shape that is predicted at a time of the motion, s; null: none. */
export function look(time: number | null): void {
  const { motion } = useMotion.getState()
  if (!motion || !robotInfo(useStore.getState())?.has_surface || !mayOperate()) return
  useMotion.setState({ time })
  const values = time === null ? null : valuesAt(motion, time)
  looking(() => send({ type: 'foresee', robot: useStore.getState().robot, values }))
}

/** Run the motion as it was planned. */
export function runMotion(): void {
  const { robot, gestureEpoch: epoch } = useStore.getState()
  const { motion } = useMotion.getState()
  if (!motion || !epoch || !mayOperate()) return
  look(null)
  send({ type: 'run_motion', robot, epoch, motion: motion.id })
}

/** Lead the robot there and back until what it did before cannot matter. */
export function goHome(): void {
  const { robot, gestureEpoch: epoch } = useStore.getState()
  if (epoch && mayOperate()) send({ type: 'go_home', robot, epoch })
}

/** Forget the motion, and what is shown of it. */
export function endMotion(): void {
  look(null)
  forgetMotion()
}
