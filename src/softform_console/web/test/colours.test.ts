import { expect, it } from 'vitest'
import { colourValues, LINEAR_COLOURS, niceTop, steadyTop } from '../src/colours'
import { millimetres, percent, shown } from '../src/quantities'

it('colours values between 0 and the end of the scale, and keeps what is beyond', () => {
  const colours = new Float32Array(12)
  colourValues([0, 1, 5, Number.NaN], 1, colours)
  expect(colours.slice(0, 3)).toEqual(LINEAR_COLOURS.slice(0, 3))
  expect(colours.slice(3, 6)).toEqual(LINEAR_COLOURS.slice(-3))
  expect(colours.slice(6, 9)).toEqual(LINEAR_COLOURS.slice(-3))
  expect(colours.slice(9)).toEqual(LINEAR_COLOURS.slice(0, 3))
})

it('grows brighter all along, so that it reads in grey', () => {
  const bright = Array.from(
    { length: 256 },
    (_, i) => 0.2126 * LINEAR_COLOURS[3 * i] + 0.7152 * LINEAR_COLOURS[3 * i + 1] + 0.0722 * LINEAR_COLOURS[3 * i + 2],
  )
  for (let i = 1; i < 256; i++) expect(bright[i]).toBeGreaterThan(bright[i - 1])
})

it.each([
  [0.0011, 0.002],
  [0.002, 0.002],
  [0.021, 0.05],
  [0.051, 0.1],
  [0, 0],
  [Number.NaN, 0],
])('ends a scale for %f at %f', (value, top) => expect(niceTop(value)).toBeCloseTo(top, 12))

it('keeps a scale until much of it is unused', () => {
  expect(steadyTop(0.05, 0.019, 0.001)).toBe(0.05)
  expect(steadyTop(0.05, 0.017, 0.001)).toBeCloseTo(0.02)
  expect(steadyTop(0.05, 0.06, 0.001)).toBeCloseTo(0.1)
  expect(steadyTop(0.05, 0.001, 0.001)).toBeCloseTo(0.001)
  expect(steadyTop(0, 1e-7, 0.001)).toBeCloseTo(0.001)
})

it('shows SI values as people read them', () => {
  expect(shown(3210, 'Pa')).toBe('3.21 kPa')
  expect(shown(null, 'm')).toBe('– mm')
  expect(millimetres(0.00123)).toBe('1.23 mm')
  expect(millimetres(null)).toBe('–')
  expect(percent(0.123)).toBe('12 %')
  expect(percent(0.004)).toBe('0.4 %')
})
