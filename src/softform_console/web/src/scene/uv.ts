import type { Topology } from '../frames'

/** A place on a mesh: a triangle and its barycentric coordinates, which sum to 1. */
export interface Place {
  triangle: number
  weights: [number, number, number]
}

/** Surface parameters, 0 to 1. */
export type Uv = [number, number]

/**
 * Surface parameters of a place. On a tube one of them closes on itself: where a triangle's corners lie more than half
 * a turn apart, the low ones are a turn further.
 */
export function uvAt(topology: Topology, place: Place): Uv {
  if (topology.cells) {
    const cell = [Math.floor(place.triangle / topology.cells), place.triangle % topology.cells]
    return [0, 1].map((k) => (cell[k] + MARGIN + PART * place.weights[k + 1]) / topology.cells) as Uv
  }
  const corners = cornersOf(topology, place.triangle)
  const out: Uv = [0, 0]
  for (const k of [0, 1] as const) {
    const values = unwrapped(corners.map((corner) => topology.uv[2 * corner + k]))
    const value = values.reduce((sum, one, i) => sum + one * place.weights[i], 0)
    out[k] = Math.max(0, Math.min(1, value > 1 + 1e-6 ? value - 1 : value))
  }
  return out
}

/** Of a cell of a skin's map, as in `surface/skin.py`: where its triangle begins, and how much of it it takes. */
const [MARGIN, PART] = [0.25, 0.5]

function placeOnSkin({ cells, triangles }: Topology, uv: Uv): Place | null {
  const cell = uv.map((value) => Math.min(Math.floor(value * cells), cells - 1))
  const triangle = cell[0] * cells + cell[1]
  const [b, c] = uv.map((value, k) => (value * cells - cell[k] - MARGIN) / PART)
  return 3 * triangle < triangles.length ? { triangle, weights: inside([1 - b - c, b, c]) } : null
}

function cornersOf(topology: Topology, triangle: number): number[] {
  return [0, 1, 2].map((k) => topology.triangles[3 * triangle + k])
}

function unwrapped(values: number[]): number[] {
  const turned = Math.max(...values) - Math.min(...values) > 0.5
  return turned ? values.map((value) => (value < 0.5 ? value + 1 : value)) : values
}

/** The place of (u, v) on an output: the triangle that it lies in, else the nearest one; null without any. */
export function placeOf(topology: Topology, output: number, [u, v]: Uv): Place | null {
  if (topology.cells) return output === topology.output[0] ? placeOnSkin(topology, [u, v]) : null
  let best: Place | null = null
  let bestOutside = Infinity
  for (let triangle = 0; 3 * triangle < topology.triangles.length; triangle++) {
    const corners = cornersOf(topology, triangle)
    if (topology.output[corners[0]] !== output) continue
    const us = unwrapped(corners.map((corner) => topology.uv[2 * corner]))
    const vs = unwrapped(corners.map((corner) => topology.uv[2 * corner + 1]))
    const weights = barycentric(us, vs, turnInto(us, u), turnInto(vs, v))
    const outside = -Math.min(...weights)
    if (outside < bestOutside) {
      best = { triangle, weights }
      bestOutside = outside
      if (outside <= 1e-9) break
    }
  }
  return best && { triangle: best.triangle, weights: inside(best.weights) }
}

function turnInto(corners: number[], value: number): number {
  return Math.max(...corners) > 1 && value < 0.5 ? value + 1 : value
}

function barycentric(us: number[], vs: number[], u: number, v: number): [number, number, number] {
  const area = (us[1] - us[0]) * (vs[2] - vs[0]) - (us[2] - us[0]) * (vs[1] - vs[0])
  if (area === 0) return [-Infinity, -Infinity, -Infinity]
  const b = ((u - us[0]) * (vs[2] - vs[0]) - (us[2] - us[0]) * (v - vs[0])) / area
  const c = ((us[1] - us[0]) * (v - vs[0]) - (u - us[0]) * (vs[1] - vs[0])) / area
  return [1 - b - c, b, c]
}

function inside(weights: [number, number, number]): [number, number, number] {
  const kept = weights.map((weight) => Math.max(0, weight))
  return kept.map((weight) => weight / (kept[0] + kept[1] + kept[2])) as [number, number, number]
}
