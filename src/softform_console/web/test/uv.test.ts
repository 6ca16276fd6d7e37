import { describe, expect, it } from 'vitest'
import type { Topology } from '../src/frames'
import { placeOf, uvAt, type Uv } from '../src/scene/uv'

/** A grid of rows x columns vertices; a tube's last column joins the first. */
function grid(rows: number, columns: number, tube: boolean): Topology {
  const uv: number[] = []
  const triangles: number[] = []
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) uv.push(i / (rows - 1), j / (tube ? columns : columns - 1))
  for (let i = 0; i + 1 < rows; i++) {
    for (let j = 0; j < (tube ? columns : columns - 1); j++) {
      const [a, b] = [i * columns + j, i * columns + ((j + 1) % columns)]
      triangles.push(a, a + columns, b, b, a + columns, b + columns)
    }
  }
  const vertices = rows * columns
  return {
    id: 1,
    vertices,
    triangles: Uint32Array.from(triangles),
    uv: Float32Array.from(uv),
    output: new Uint8Array(vertices),
    cells: 0,
  }
}

describe.each([
  ['a sheet', grid(7, 9, false)],
  ['a tube', grid(7, 9, true)],
])('places on %s', (_, topology) => {
  it('have the surface parameters that they were found by', () => {
    for (let k = 0; k < 500; k++) {
      const uv: Uv = [((k * 37) % 500) / 500, ((k * 91) % 499) / 499]
      const place = placeOf(topology, 0, uv)!
      const back = uvAt(topology, place)
      expect(back[0]).toBeCloseTo(uv[0], 5)
      expect(back[1]).toBeCloseTo(uv[1], 5)
      expect(place.weights.reduce((a, b) => a + b)).toBeCloseTo(1, 9)
      expect(Math.min(...place.weights)).toBeGreaterThanOrEqual(0)
    }
  })

  it('are none on an output that it has not', () => {
    expect(placeOf(topology, 3, [0.5, 0.5])).toBeNull()
  })
})

it('closes a tube between its last column and its first', () => {
  const topology = grid(3, 4, true)
  const place = placeOf(topology, 0, [0.25, 0.9])!
  const columns = [0, 1, 2].map((k) => topology.triangles[3 * place.triangle + k] % 4)
  expect(new Set(columns)).toEqual(new Set([0, 3]))
})

it('names each place of a skin once, as the server does', () => {
  const skin: Topology = { ...grid(3, 4, false), output: new Uint8Array(12).fill(2), cells: 4 }
  const uv = uvAt(skin, { triangle: 11, weights: [0.2, 0.3, 0.5] }) // surface/skin.py: parameters([11], [[.2, .3, .5]])
  expect(uv[0]).toBeCloseTo(0.6, 12)
  expect(uv[1]).toBeCloseTo(0.875, 12)
  const place = placeOf(skin, 2, uv)!
  expect(place.triangle).toBe(11)
  place.weights.forEach((weight, k) => expect(weight).toBeCloseTo([0.2, 0.3, 0.5][k], 12))
  expect(placeOf(skin, 2, [1, 1])).toBeNull()
  expect(placeOf(skin, 0, uv)).toBeNull()
})
