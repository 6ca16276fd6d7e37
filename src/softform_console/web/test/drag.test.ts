import { Vector3 } from 'three'
import { expect, it } from 'vitest'
import { dragPlane } from '../src/scene/drag'

const up = new Vector3(0, 0, 1)
const point = new Vector3(0.1, 0.2, 0.3)

it('moves what is dragged along the surface normal, seen from the side', () => {
  const plane = dragPlane(new Vector3(0, 0.8, -0.6), up, point)
  expect(plane.normal.dot(up)).toBeCloseTo(0)
  expect(plane.distanceToPoint(point)).toBeCloseTo(0)
  expect(plane.distanceToPoint(point.clone().add(up))).toBeCloseTo(0)
})

it('moves it across the sight, seen along the normal or without one', () => {
  const sight = new Vector3(0, 0.1, -1).normalize()
  expect(dragPlane(sight, up, point).normal.dot(sight)).toBeCloseTo(1)
  expect(dragPlane(new Vector3(0, 1, 0), null, point).normal.y).toBeCloseTo(1)
})
