import { beforeEach, expect, it } from 'vitest'
import type * as THREE from 'three'
import { graphics, noteCast, quickerCaster } from '../src/scene/picker'

beforeEach(() => Object.assign(graphics, { renderer: {} as THREE.WebGLRenderer, always: false }))

it('lets both cast rays a few times, and then the quicker one', () => {
  const casts: string[] = []
  for (let k = 0; k < 10; k++) {
    casts.push(quickerCaster())
    // The card compiles at first; in the middle it is quicker.
    noteCast(quickerCaster(), casts[k] === 'processor' ? 3 : k === 0 ? 100 : 1)
  }
  expect(casts.filter((one) => one === 'graphics').length).toBe(5)
  expect(quickerCaster()).toBe('graphics')
})

it('asks no card where there is none, and only the card where that is wanted', () => {
  graphics.renderer = null
  expect(quickerCaster()).toBe('processor')
  Object.assign(graphics, { renderer: {} as THREE.WebGLRenderer, always: true })
  expect(quickerCaster()).toBe('graphics')
})
