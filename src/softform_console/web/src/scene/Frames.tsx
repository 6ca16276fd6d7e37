import { useMemo } from 'react'
import * as THREE from 'three'
import type { FramePlace } from '../protocol'
import { robotInfo, robotState, useStore } from '../store'
import { drop, move, pickFrame } from './drag'

const NONE: FramePlace[] = []

/** Frames of the robot, such as its tip, as axes: x red, y green, z blue; those that can be asked for can be dragged. */
export function Frames() {
  const visible = useStore((store) => store.layers.frames)
  const frames = useStore((store) => robotState(store)?.frames ?? NONE)
  const info = useStore(robotInfo)
  if (!visible || !info) return null
  const asked = new Set(info.outputs.filter((output) => output.kind === 'frame').map((output) => output.name))
  return frames.map((frame) => (
    <FrameAxes key={frame.name} frame={frame} size={info.size} draggable={asked.has(frame.name)} />
  ))
}

function FrameAxes({ frame, size, draggable }: { frame: FramePlace; size: number; draggable: boolean }) {
  const axes = useMemo(() => new THREE.AxesHelper(0.12 * size), [size])
  return (
    <group position={frame.place} quaternion={frame.rotation}>
      <primitive object={axes} raycast={() => undefined} />
      {draggable && (
        <mesh
          onPointerDown={(event) => pickFrame(event, frame.name, frame.place)}
          onPointerMove={move}
          onPointerUp={drop}
          onPointerCancel={drop}
        >
          <sphereGeometry args={[0.04 * size, 24, 16]} />
          <meshStandardMaterial color="#7aa2d6" roughness={0.5} />
        </mesh>
      )}
    </group>
  )
}
