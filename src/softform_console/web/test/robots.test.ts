import { beforeEach, expect, test } from 'vitest'
import type { Hello } from '../src/protocol'
import { showRobot, takeHello } from '../src/robots'
import { setTarget, useStore } from '../src/store'

const robot = (index: number, name: string, frame = `${name}/base_link`) => ({ index, name, title: name, frame })
const hello = (...robots: ReturnType<typeof robot>[]) => ({ type: 'hello', robots }) as unknown as Hello
const MINE = { uploaded: { id: 7 } } as unknown as Parameters<typeof setTarget>[0]

beforeEach(() => {
  takeHello(hello(robot(0, 'arm'), robot(1, 'membrane'), robot(2, 'tube')))
  showRobot(1)
  setTarget(MINE)
})

test('a server that was reached again keeps what was meant for the same robot', () => {
  takeHello(hello(robot(0, 'arm'), robot(1, 'membrane')))
  expect(useStore.getState().robot).toBe(1)
  expect(useStore.getState().target.uploaded?.id).toBe(7)
})

test('a robot that has another number is looked at by that, and nothing is meant for it any more', () => {
  takeHello(hello(robot(0, 'arm'), robot(1, 'tube'), robot(2, 'membrane')))
  expect(useStore.getState().robot).toBe(2)
  expect(useStore.getState().target.uploaded).toBeNull()
})

test('of a robot that is gone nothing is meant for the first one', () => {
  takeHello(hello(robot(0, 'arm'), robot(1, 'membrane', 'other/base_link')))
  expect(useStore.getState().robot).toBe(0)
  expect(useStore.getState().target.uploaded).toBeNull()
})
