/** Obstacles, the path that is drawn, and the motion that was planned and is looked at before it runs. */

import { create } from 'zustand'
import type { Motion, MotionState, Obstacle } from './protocol'
import { robotState, useStore, type Store } from './store'

/** A point of the robot, by patch and (u, v) or by frame, and where it is to be led, m. */
export interface Stroke {
  output: string
  u: number
  v: number
  places: [number, number, number][]
}

const NOTHING = {
  motion: null as Motion | null,
  state: null as MotionState | null,
  /** Time of the motion that is looked at, s; null: none is. */
  time: null as number | null,
  stroke: null as Stroke | null,
  /** Whether the next drag draws a path. */
  drawing: false,
}

const BEGIN = {
  ...NOTHING,
  /** Obstacles as this page has placed them; null where it has placed none. */
  obstacles: null as Obstacle[] | null,
  chosen: null as number | null,
  /** A pose to come back to: values of the actuators. */
  kept: null as number[] | null,
  /** How long a motion along a path is to last, s. */
  seconds: 10,
}
export type MotionStore = typeof BEGIN

export const useMotion = create<MotionStore>(() => BEGIN)

/** Take what the server says of motions. */
export function takeMotion(message: Motion | MotionState): void {
  if (message.type === 'motion') useMotion.setState({ motion: message, stroke: null, time: null })
  else useMotion.setState({ state: message })
}

/** Forget the motion and what led to it. */
export function forgetMotion(): void {
  useMotion.setState(NOTHING)
}

/** Obstacles that are shown: the operator's own, else those in force. */
export function obstaclesOf(store: Store, { obstacles }: MotionStore): Obstacle[] {
  return (store.state?.operator === 'you' && obstacles) || (robotState(store)?.obstacles ?? NONE)
}
const NONE: Obstacle[] = []

/** Obstacles that are shown, for components. */
export function useObstacles(): Obstacle[] {
  const motion = useMotion()
  return useStore((store) => obstaclesOf(store, motion))
}

/** Whether a motion is planned or runs. */
export function isUnderWay({ state }: MotionStore): boolean {
  return state?.stage === 'planning' || state?.stage === 'moving'
}

/** Values of the actuators at a time of a motion, on straight lines between its waypoints. */
export function valuesAt({ times, actuators }: Motion, time: number): number[] {
  const after = times.findIndex((one) => one >= time)
  if (after === 0 || after === -1) return actuators.at(after)!
  const share = (time - times[after - 1]) / (times[after] - times[after - 1])
  return actuators[after].map((value, k) => actuators[after - 1][k] + share * (value - actuators[after - 1][k]))
}

/** So many places along a line of places, as far from one another. */
export function evenly(places: [number, number, number][], count: number): [number, number, number][] {
  const way = [0]
  for (let i = 1; i < places.length; i++) way.push(way[i - 1] + distance(places[i], places[i - 1]))
  return Array.from({ length: count }, (_, k) => {
    const at = (way.at(-1)! * k) / (count - 1)
    const after = Math.max(
      1,
      way.findIndex((one) => one >= at),
    )
    const share = (at - way[after - 1]) / (way[after] - way[after - 1] || 1)
    return places[after].map((value, axis) => {
      const before = places[after - 1][axis]
      return before + share * (value - before)
    }) as [number, number, number]
  })
}

function distance(a: number[], b: number[]): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])
}
