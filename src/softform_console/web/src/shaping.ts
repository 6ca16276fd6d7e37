/** The object that arms hold: the target that is drawn, and how shaping goes. */

import { create } from 'zustand'
import type { ObjectPreviewed, Shaping } from './protocol'
import { useStore } from './store'

const BEGIN = {
  /** Poses of both grippers from which points lead them away, as in the protocol. */
  base: Array.from({ length: 12 }, () => 0),
  /** Whether this page has drawn a target; until then it goes on from that of another one. */
  drawn: false,
  /** Whether points have led the grippers to the target that was asked for last. */
  led: false,
  preview: null as ObjectPreviewed | null,
  state: null as Shaping | null,
  /** Looks at most, and stress at most, Pa; 0: the usual. */
  looks: 0,
  limit: 0,
}

export const useShaping = create<typeof BEGIN>(() => BEGIN)

/** Poses of the grippers in the target; of sliders those that are wanted, which may not be answered yet. */
export function posesOf({ base, preview, led }: typeof BEGIN): number[] {
  return led && preview ? preview.poses : base
}

/** Take what the server says of the object of the robot that is looked at. */
export function takeShaping(message: ObjectPreviewed | Shaping): void {
  if (message.robot !== useStore.getState().robot) return
  if (message.type === 'shaping') useShaping.setState({ state: message })
  else useShaping.setState(({ base, drawn }) => ({ preview: message, base: drawn ? base : message.poses }))
}

/** Begin anew, with another robot. */
export function forgetShaping(): void {
  useShaping.setState(BEGIN)
}
