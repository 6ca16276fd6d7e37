/** The object that arms hold: the target that is drawn, and how shaping goes. */

import { create } from 'zustand'
import type { ObjectPreviewed, Shaping } from './protocol'
import { useStore } from './store'

const BEGIN = {
  /** Poses of both grippers from which points lead them away, as in the protocol. */
  base: Array.from({ length: 12 }, () => 0),
  preview: null as ObjectPreviewed | null,
  state: null as Shaping | null,
  /** Looks at most, and stress at most, Pa; 0: the usual. */
  looks: 0,
  limit: 0,
}
type ShapingStore = typeof BEGIN

export const useShaping = create<ShapingStore>(() => BEGIN)

/** Poses of the target that is shown. */
export function posesOf({ base, preview }: ShapingStore): number[] {
  return preview?.poses ?? base
}

/** Take what the server says of the object of the robot that is looked at. */
export function takeShaping(message: ObjectPreviewed | Shaping): void {
  if (message.robot !== useStore.getState().robot) return
  useShaping.setState(message.type === 'shaping' ? { state: message } : { preview: message })
}

/** Begin anew, with another robot. */
export function forgetShaping(): void {
  useShaping.setState(BEGIN)
}
