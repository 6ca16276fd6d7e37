import { describe, expect, it } from 'vitest'
import type { DriverInfo, RobotState, Stopped } from '../src/protocol'
import { overallStatus, robotStatus } from '../src/status'

function robot(
  state: DriverInfo['state'],
  all_at_rest: boolean,
  settled = true,
  reason = '',
  asked = false,
  stands_still = false,
): RobotState {
  const driver = {
    state,
    reason,
    stopped: asked,
    holder: '',
    faults: [],
    warnings: [],
    epoch: '1',
    age: 0,
    all_at_rest,
    stands_still,
  }
  return {
    robot: 0,
    driver,
    servo: null,
    commanded: null,
    measured: null,
    settled,
    past_known: true,
    frames: [],
    contacts: [],
    steering: 'none',
    points: [],
    obstacles: [],
    model: 'learned',
    models: ['learned'],
  }
}

function stopped(stage: Stopped['stage']): Stopped {
  return { type: 'stopped', stage, message: 'c3 is still at 3279 Pa', seconds: 1 }
}

describe('robotStatus', () => {
  it('says stopped only of what is measured at rest', () => {
    const states = ['safe', 'running', 'fault', 'offline', 'holding', 'making_safe', 'silent'] as const
    const words = states.flatMap((state) =>
      [true, false].map((rest) => [state, rest, robotStatus(robot(state, rest)).word]),
    )
    expect(words.filter(([, , word]) => word === 'Stopped')).toEqual([['safe', true, 'Stopped']])
  })

  it('tells a stop by request from a fault, and says stopped only of what is measured at rest', () => {
    expect(robotStatus(robot('fault', false, true, '', true)).word).toBe('Stopping')
    expect(robotStatus(robot('fault', true, true, '', true)).word).toBe('Stopped')
    expect(robotStatus(robot('fault', true)).word).toBe('At fault')
    const braked = robotStatus(robot('fault', false, true, '', true, true))
    expect([braked.word, braked.tone]).toEqual(['Stopped', 'held'])
    expect(robotStatus(robot('fault', false, true, '', false, true)).word).toBe('At fault')
  })

  it('tells a robot that moves from one that holds', () => {
    expect(robotStatus(robot('running', false, false)).tone).toBe('moving')
    expect(robotStatus(robot('running', false, true)).tone).toBe('held')
  })
})

describe('overallStatus', () => {
  const safe = robot('safe', true)
  it('is that of the gravest robot', () => {
    expect(overallStatus(true, [safe, robot('running', false, false)], null).word).toBe('Moving')
    expect(
      overallStatus(true, [robot('running', false, false), robot('fault', false, true, 'c3 leaks')], null),
    ).toMatchObject({ tone: 'fault', detail: 'c3 leaks' })
    expect(overallStatus(true, [robot('fault', false), robot('silent', false)], null).tone).toBe('unknown')
  })

  it('says stopping until rest is measured, and that it is not confirmed where it is not', () => {
    const moving = robot('running', false, false)
    expect(overallStatus(true, [moving], stopped('asked')).word).toBe('Stopping')
    expect(overallStatus(true, [moving], stopped('acknowledged')).word).toBe('Stopping')
    expect(overallStatus(true, [safe], stopped('confirmed')).word).toBe('Stopped')
    expect(overallStatus(true, [safe], stopped('unconfirmed')).word).toBe('Stopped')
    expect(overallStatus(true, [moving], stopped('unconfirmed'))).toMatchObject({
      tone: 'fault',
      detail: 'c3 is still at 3279 Pa',
    })
  })

  it('knows nothing without a connection or a state', () => {
    expect(overallStatus(false, [safe], null).tone).toBe('unknown')
    expect(overallStatus(true, null, null).tone).toBe('unknown')
  })
})
