import { expect, it } from 'vitest'
import { evenly, valuesAt } from '../src/motion'
import type { Motion } from '../src/protocol'

const motion = {
  times: [0, 1, 3],
  actuators: [
    [0, 10],
    [100, 10],
    [100, 30],
  ],
} as Motion

it('has values on straight lines between the waypoints of a motion, and those of its ends beyond them', () => {
  expect([-1, 0, 0.5, 1, 2, 3, 9].map((time) => valuesAt(motion, time))).toEqual([
    [0, 10],
    [0, 10],
    [50, 10],
    [100, 10],
    [100, 20],
    [100, 30],
    [100, 30],
  ])
})

it('spaces the places of a drawn path evenly, its ends kept, also where the pointer stood still', () => {
  const drawn: [number, number, number][] = [
    [0, 0, 0],
    [0, 0, 1],
    [0, 0, 1],
    [0, 3, 1],
  ]
  expect(evenly(drawn, 5)).toEqual([
    [0, 0, 0],
    [0, 0, 1],
    [0, 1, 1],
    [0, 2, 1],
    [0, 3, 1],
  ])
})
