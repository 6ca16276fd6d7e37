import { describe, expect, it } from 'vitest'
import { address, duration, size } from '../src/jobs/answers'

describe('jobs', () => {
  it('says times and sizes as people read them', () => {
    expect([0, 9.4, 61, 3723.6, -1].map(duration)).toEqual(['0:00', '0:09', '1:01', '1:02:04', '0:00'])
    expect([0, 10_000, 142_700_000, 2.5e9].map(size)).toEqual(['0.0 kB', '10.0 kB', '142.7 MB', '2.50 GB'])
  })
  it('addresses files whatever their names', () => {
    expect(address('bags/a b/100%?#.mcap')).toBe('runs/bags/a%20b/100%25%3F%23.mcap')
  })
})
