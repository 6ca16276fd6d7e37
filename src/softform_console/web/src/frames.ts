/** Binary frames of the scene; the layout is that of PROTOCOL.md. */

const MAGIC = 0x31434653
const HEADER = 72
const KINDS = ['', 'topology', 'mesh', 'cloud', 'markers', 'target', 'gone'] as const

/** A kind of scene frame. */
export type Kind = 'topology' | 'mesh' | 'cloud' | 'markers' | 'target' | 'gone'

/** Triangles, surface parameters (u, v) and output index of a mesh's vertices; `cells` a side of a skin's map, else 0. */
export interface Topology {
  id: number
  vertices: number
  triangles: Uint32Array
  uv: Float32Array
  output: Uint8Array
  cells: number
}

/** A decoded frame; positions m (3 n) and scalar SI (n) or null, `stamp` s since the epoch. */
export interface SceneFrame {
  kind: Kind
  gone: Kind
  robot: number
  seq: number
  stamp: number
  stale: boolean
  preview: boolean
  topologyId: number
  positions: Float32Array
  scalar: Float32Array | null
  triangles: Uint32Array
  topology: Topology | null
}

/** Decode a frame; a frame of another version or length is an error. */
export function decodeFrame(buffer: ArrayBuffer): SceneFrame {
  const view = new DataView(buffer)
  if (buffer.byteLength < HEADER || view.getUint32(0, true) !== MAGIC) {
    throw new Error('This is no frame of the scene: reload the page, it may be older than its server.')
  }
  const kind = KINDS[view.getUint8(4)]
  if (!kind) throw new Error('A frame of an unknown kind came: reload the page, it is older than its server.')
  const quantised = view.getUint8(5) === 1
  const flags = view.getUint8(6)
  const n = view.getUint32(24, true)
  const t = view.getUint32(28, true)
  const frame: SceneFrame = {
    kind,
    gone: KINDS[view.getUint8(7)] || 'gone',
    robot: view.getUint16(8, true),
    seq: view.getUint32(12, true),
    stamp: view.getFloat64(16, true),
    stale: (flags & 1) !== 0,
    preview: (flags & 4) !== 0,
    topologyId: view.getUint32(32, true),
    positions: new Float32Array(0),
    scalar: null,
    triangles: new Uint32Array(0),
    topology: null,
  }
  if (kind === 'gone') return frame
  if (kind === 'topology') {
    frame.topology = {
      id: frame.topologyId,
      vertices: n,
      triangles: new Uint32Array(buffer, HEADER, 3 * t),
      uv: new Float32Array(buffer, HEADER + 12 * t, 2 * n),
      output: new Uint8Array(buffer, HEADER + 12 * t + 8 * n, n),
      cells: view.getUint32(44, true),
    }
    return frame
  }
  frame.positions = quantised
    ? dequantised(new Uint16Array(buffer, HEADER, 3 * n), floats(view, 48), floats(view, 60))
    : new Float32Array(buffer, HEADER, 3 * n)
  const after = HEADER + (quantised ? 6 : 12) * n
  if (flags & 2) {
    frame.scalar = quantised
      ? levels(new Uint8Array(buffer, after, n), view.getFloat32(36, true), view.getFloat32(40, true))
      : new Float32Array(buffer, after, n)
  }
  if (kind === 'target') frame.triangles = new Uint32Array(buffer, after, 3 * t)
  return frame
}

function floats(view: DataView, offset: number): [number, number, number] {
  return [view.getFloat32(offset, true), view.getFloat32(offset + 4, true), view.getFloat32(offset + 8, true)]
}

function dequantised(values: Uint16Array, low: [number, number, number], step: [number, number, number]): Float32Array {
  const out = new Float32Array(values.length)
  for (let i = 0; i < values.length; i++) out[i] = low[i % 3] + step[i % 3] * values[i]
  return out
}

function levels(values: Uint8Array, low: number, step: number): Float32Array {
  return Float32Array.from(values, (value) => low + step * value)
}

/** Places of now, and the last ones of what is missing now; of another number of markers nothing is known. */
export function lastSeen(before: Float32Array, now: Float32Array): Float32Array {
  return now.map((value, i) => (Number.isNaN(value) && before.length === now.length ? before[i] : value))
}
