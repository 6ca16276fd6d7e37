import { useEffect, useMemo } from 'react'
import * as THREE from 'three'
import { colourValues } from '../colours'
import type { SceneFrame } from '../frames'
import { robotInfo, useStore } from '../store'
import { usePicture } from './picture'

/** What a scanner or motion capture has seen of the robot, and the target that is wanted or previewed. */
export function Captured() {
  const robot = useStore((store) => store.robot)
  const layers = useStore((store) => store.layers)
  const cloud = usePicture(robot, 'cloud')
  const distances = usePicture(robot, 'cloudDistances')
  const markers = usePicture(robot, 'markers')
  const seen = usePicture(robot, 'markersSeen')
  const size = useStore((store) => robotInfo(store)?.size ?? 0.3)
  const target = usePicture(robot, 'target')
  const preview = usePicture(robot, 'preview')
  // What was previewed is a goal's target once that has begun.
  const isPreviewed = useMemo(() => preview !== null && target !== null && isAlike(preview, target), [preview, target])
  return (
    <>
      {layers.cloud && cloud && <Dots frame={cloud} size={distances ? 3 : 1.8} colour="#4fc3d9" values={distances} />}
      {layers.markers && markers && <Dots frame={markers} size={9} colour="#e6f4ff" />}
      {layers.markers && markers && <Missing frame={markers} seen={seen} size={0.02 * size} />}
      {layers.target && target && <TargetShape frame={target} />}
      {layers.target && preview && !isPreviewed && <TargetShape frame={preview} />}
    </>
  )
}

function isAlike(one: SceneFrame, other: SceneFrame): boolean {
  const [a, b] = [one.positions, other.positions]
  return a.length === b.length && a.every((value, i) => value === b[i])
}

/** Points of fixed size on the screen; those that were not seen (NaN) are left out. */
function Dots({
  frame,
  size,
  colour,
  values = null,
}: {
  frame: SceneFrame
  size: number
  colour: string
  values?: Float32Array | null
}) {
  const top = useStore((store) => store.scaleTop)
  const geometry = useMemo(() => {
    const seen = Array.from({ length: frame.positions.length / 3 }, (_, i) => i).filter(
      (i) => !Number.isNaN(frame.positions[3 * i]),
    )
    const made = new THREE.BufferGeometry()
    const positions = seen.flatMap((i) => [...frame.positions.subarray(3 * i, 3 * i + 3)])
    made.setAttribute('position', new THREE.Float32BufferAttribute(positions, 3))
    const colours = new Float32Array(positions.length).fill(1)
    if (values)
      colourValues(
        seen.map((i) => values[i]),
        top,
        colours,
      )
    return made.setAttribute('color', new THREE.BufferAttribute(colours, 3))
  }, [frame, values, top])
  useEffect(() => () => geometry.dispose(), [geometry])
  return (
    <points geometry={geometry} frustumCulled={false} raycast={() => undefined}>
      <pointsMaterial
        size={size}
        sizeAttenuation={false}
        color={values ? '#ffffff' : colour}
        vertexColors
        transparent
        opacity={0.9}
      />
    </points>
  )
}

/** Markers that are not seen now, as crosses where they were seen last. */
function Missing({ frame, seen, size }: { frame: SceneFrame; seen: Float32Array; size: number }) {
  const geometry = useMemo(() => {
    const ends: number[] = []
    for (let at = 0; at < seen.length; at += 3) {
      if (Number.isNaN(seen[at]) || !Number.isNaN(frame.positions[at])) continue
      for (const [x, y, z] of CROSS)
        for (const sign of [-size, size])
          ends.push(seen[at] + sign * x, seen[at + 1] + sign * y, seen[at + 2] + sign * z)
    }
    return new THREE.BufferGeometry().setAttribute('position', new THREE.Float32BufferAttribute(ends, 3))
  }, [frame, seen, size])
  useEffect(() => () => geometry.dispose(), [geometry])
  return (
    <lineSegments geometry={geometry} frustumCulled={false} renderOrder={2} raycast={() => undefined}>
      <lineBasicMaterial color="#d55e00" depthTest={false} transparent />
    </lineSegments>
  )
}
/** Ways of the arms of a cross: seen as one from any side. */
const CROSS = [
  [1, 1, 1],
  [1, -1, 1],
  [1, 1, -1],
  [-1, 1, 1],
]

function TargetShape({ frame }: { frame: SceneFrame }) {
  // An object that is nearly there shows its colours through the target; lines would take a slow computer long.
  const holds = useStore((store) => robotInfo(store)?.holds)
  const geometry = useMemo(() => {
    const made = new THREE.BufferGeometry()
    made.setAttribute('position', new THREE.BufferAttribute(frame.positions, 3))
    made.setIndex(new THREE.BufferAttribute(frame.triangles, 1))
    made.computeVertexNormals()
    return made
  }, [frame])
  useEffect(() => () => geometry.dispose(), [geometry])
  if (!frame.triangles.length || (holds && !frame.preview)) return <Dots frame={frame} size={3} colour="#ff9d2e" />
  return (
    <mesh geometry={geometry} frustumCulled={false} raycast={() => undefined}>
      <meshStandardMaterial
        color="#ff9d2e"
        transparent
        opacity={frame.preview ? 0.45 : 0.6}
        roughness={0.35}
        side={THREE.DoubleSide}
        depthWrite={false}
      />
    </mesh>
  )
}
