import { expect, it } from 'vitest'
import { History } from '../src/plots/history'
import type { RobotState } from '../src/protocol'

const state = (measured: number[] | null, iterations = 7): RobotState =>
  ({
    commanded: [100, 200],
    measured,
    servo: { mean_error: 0.001, max_error: 0.002, latency: 0.004, iterations },
  }) as RobotState

it('keeps columns in SI, shows them in the unit that is asked for, and leaves out what is not known', () => {
  const history = new History([
    { name: 'c1', unit: 'Pa' },
    { name: 'c2', unit: 'Pa' },
  ])
  history.push(10, state([90, 190]))
  history.push(10.5, state(null, 9))
  expect(history.columns([3, 5], 2)).toEqual([
    [10, 10.5],
    [180, null],
    [0.002, 0.002],
  ])
  expect(history.csv().split('\n')).toEqual([
    'time s,c1 commanded Pa,c2 commanded Pa,c1 measured Pa,c2 measured Pa,mean error m,largest error m,latency s,iterations a second',
    '10,100,200,90,190,0.001,0.002,0.004,',
    '10.5,100,200,,,0.001,0.002,0.004,4',
    '',
  ])
})

it('forgets what is older than ten minutes', () => {
  const history = new History([])
  for (let k = 0; k < 6010; k++) history.push(k, state([]))
  expect(history.columns([], 1)[0].length).toBe(6000)
  expect(history.columns([], 1)[0][0]).toBe(10)
})
