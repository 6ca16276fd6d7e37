import { describe, expect, it } from 'vitest'
import { decodeFrame, lastSeen } from '../src/frames'

const MAGIC = 0x31434653

interface Fields {
  kind: number
  level?: number
  flags?: number
  gone?: number
  n?: number
  t?: number
  scalar?: [number, number]
  low?: number[]
  step?: number[]
}

function frame(
  { kind, level = 0, flags = 0, gone = 0, n = 0, t = 0, scalar = [0, 0], low = [0, 0, 0], step = [0, 0, 0] }: Fields,
  ...body: ArrayBufferView[]
): ArrayBuffer {
  const bytes = body.reduce((sum, part) => sum + part.byteLength, 72)
  const buffer = new ArrayBuffer(bytes)
  const view = new DataView(buffer)
  view.setUint32(0, MAGIC, true)
  ;[kind, level, flags, gone].forEach((value, i) => view.setUint8(4 + i, value))
  view.setUint16(8, 2, true)
  view.setUint32(12, 41, true)
  view.setFloat64(16, 1234.5, true)
  view.setUint32(24, n, true)
  view.setUint32(28, t, true)
  view.setUint32(32, 9, true)
  scalar.forEach((value, i) => view.setFloat32(36 + 4 * i, value, true))
  low.forEach((value, i) => view.setFloat32(48 + 4 * i, value, true))
  step.forEach((value, i) => view.setFloat32(60 + 4 * i, value, true))
  let at = 72
  for (const part of body) {
    new Uint8Array(buffer).set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), at)
    at += part.byteLength
  }
  return buffer
}

describe('decodeFrame', () => {
  it('reads header, vertices and uncertainty', () => {
    const read = decodeFrame(
      frame({ kind: 2, flags: 3, n: 2 }, new Float32Array([1, 2, 3, 4, 5, 6]), new Float32Array([0.5, 0.25])),
    )
    expect(read).toMatchObject({
      kind: 'mesh',
      robot: 2,
      seq: 41,
      stamp: 1234.5,
      stale: true,
      preview: false,
      topologyId: 9,
    })
    expect([...read.positions]).toEqual([1, 2, 3, 4, 5, 6])
    expect([...read.scalar!]).toEqual([0.5, 0.25])
  })

  it('brings 16-bit vertices and 8-bit uncertainty back to metres', () => {
    const values = new Uint16Array([0, 65535, 2, 1, 0, 3])
    const read = decodeFrame(
      frame(
        { kind: 2, level: 1, flags: 2, n: 2, scalar: [0.5, 0.25], low: [1, 0, -1], step: [0.5, 0.25, 2] },
        values,
        new Uint8Array([0, 4]),
      ),
    )
    expect([...read.positions]).toEqual([1, 16383.75, 3, 1.5, 0, 5])
    expect([...read.scalar!]).toEqual([0.5, 1.5])
    expect(read.stale).toBe(false)
  })

  it('reads triangles, surface parameters and outputs of a topology', () => {
    const read = decodeFrame(
      frame(
        { kind: 1, n: 3, t: 1 },
        new Uint32Array([2, 0, 1]),
        new Float32Array([0, 0, 1, 0, 0, 1]),
        new Uint8Array([0, 1, 1]),
      ),
    )
    expect([...read.topology!.triangles]).toEqual([2, 0, 1])
    expect([...read.topology!.uv]).toEqual([0, 0, 1, 0, 0, 1])
    expect([...read.topology!.output]).toEqual([0, 1, 1])
    expect(read.topology!.vertices).toBe(3)
  })

  it('reads the triangles of a target that is previewed', () => {
    const read = decodeFrame(
      frame({ kind: 5, flags: 4, n: 1, t: 1 }, new Float32Array([7, 8, 9]), new Uint32Array([0, 0, 0])),
    )
    expect([...read.positions]).toEqual([7, 8, 9])
    expect([...read.triangles]).toEqual([0, 0, 0])
    expect(read.preview).toBe(true)
  })

  it('says what is gone', () => {
    expect(decodeFrame(frame({ kind: 6, gone: 3 }))).toMatchObject({ kind: 'gone', gone: 'cloud' })
  })

  it('refuses what is no frame, or of an unknown kind, or too short', () => {
    expect(() => decodeFrame(new ArrayBuffer(80))).toThrow('no frame')
    expect(() => decodeFrame(frame({ kind: 99 }))).toThrow('unknown kind')
    expect(() => decodeFrame(frame({ kind: 2, n: 5 }, new Float32Array(3)))).toThrow()
  })
})

it('keeps where a marker was seen last, as long as there are as many', () => {
  const before = lastSeen(Float32Array.of(9, 9, 9), Float32Array.of(1, 2, 3, NaN, NaN, NaN))
  expect([...before]).toEqual([1, 2, 3, NaN, NaN, NaN])
  expect([...lastSeen(before, Float32Array.of(NaN, NaN, NaN, 4, 5, 6))]).toEqual([1, 2, 3, 4, 5, 6])
})
