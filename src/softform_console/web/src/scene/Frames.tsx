import { useEffect, useMemo } from 'react'
import * as THREE from 'three'
import type { FramePlace } from '../protocol'
import { robotInfo, robotState, useStore } from '../store'
import { DRAGGED, pickFrame } from './drag'

const NONE: FramePlace[] = []

/** Frames of the robot, such as its tip, as axes: x red, y green, z blue; what can be asked for can be dragged. */
export function Frames() {
  const visible = useStore((store) => store.layers.frames)
  const frames = useStore((store) => robotState(store)?.frames ?? NONE)
  const info = useStore(robotInfo)
  if (!visible || !info) return null
  const asked = new Set(info.outputs.filter((output) => output.kind === 'frame').map((output) => output.name))
  return frames.map((frame) => (
    <FrameAxes key={frame.name} frame={frame} size={info.size} draggable={asked.has(frame.name)} grips={info.holds} />
  ))
}

interface AxesProps {
  frame: FramePlace
  size: number
  draggable: boolean
  /** Whether it is that of a gripper. */
  grips: boolean
}

function FrameAxes({ frame, size, draggable, grips }: AxesProps) {
  const axes = useMemo(() => new THREE.AxesHelper(0.12 * size), [size])
  const [x, y, z] = frame.place
  const fromBase = useMemo(
    () => new THREE.BufferGeometry().setFromPoints([new THREE.Vector3(), new THREE.Vector3(x, y, z)]),
    [x, y, z],
  )
  useEffect(() => () => fromBase.dispose(), [fromBase])
  return (
    <>
      {!grips && (
        <lineSegments geometry={fromBase} raycast={nothing}>
          <lineBasicMaterial color="#7aa2d6" />
        </lineSegments>
      )}
      <group position={frame.place} quaternion={frame.rotation}>
        <primitive object={axes} raycast={nothing} />
        {grips && (
          <mesh raycast={nothing}>
            <boxGeometry args={[0.5 * size, 0.3 * size, 0.16 * size]} />
            <meshStandardMaterial color="#28be3c" transparent opacity={0.35} depthWrite={false} />
          </mesh>
        )}
        {draggable && (
          <mesh onPointerDown={(event) => pickFrame(event, frame.name, frame.place)} {...DRAGGED}>
            <sphereGeometry args={[0.04 * size, 24, 16]} />
            <meshStandardMaterial color="#7aa2d6" roughness={0.5} />
          </mesh>
        )}
      </group>
    </>
  )
}

const nothing = () => undefined
