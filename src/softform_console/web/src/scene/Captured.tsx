import { useEffect, useMemo, useState } from 'react'
import * as THREE from 'three'
import type { SceneFrame } from '../frames'
import { useStore } from '../store'
import { onPicture, pictureOf } from './picture'

/** What a scanner or motion capture has seen of the robot, and the target that is wanted or previewed. */
export function Captured() {
  const robot = useStore((store) => store.robot)
  const layers = useStore((store) => store.layers)
  const cloud = useFrames(robot, 'cloud')
  const markers = useFrames(robot, 'markers')
  const target = useFrames(robot, 'target')
  const preview = useFrames(robot, 'preview')
  return (
    <>
      {layers.cloud && cloud && <Dots frame={cloud} size={1.8} colour="#4fc3d9" />}
      {layers.markers && markers && <Dots frame={markers} size={9} colour="#e6f4ff" />}
      {layers.target && target && <TargetShape frame={target} />}
      {layers.target && preview && <TargetShape frame={preview} />}
    </>
  )
}

function useFrames(robot: number, kind: 'cloud' | 'markers' | 'target' | 'preview'): SceneFrame | null {
  const [frame, setFrame] = useState<SceneFrame | null>(null)
  useEffect(() => {
    const show = () => setFrame(pictureOf(robot)[kind])
    show()
    return onPicture(show)
  }, [robot, kind])
  return frame
}

/** Points of fixed size on the screen; those that were not seen (NaN) are left out. */
function Dots({ frame, size, colour }: { frame: SceneFrame; size: number; colour: string }) {
  const geometry = useMemo(() => {
    const seen = Array.from({ length: frame.positions.length / 3 }, (_, i) => frame.positions.subarray(3 * i, 3 * i + 3))
      .filter((point) => !Number.isNaN(point[0]))
      .flatMap((point) => [...point])
    return new THREE.BufferGeometry().setAttribute('position', new THREE.Float32BufferAttribute(seen, 3))
  }, [frame])
  useEffect(() => () => geometry.dispose(), [geometry])
  return (
    <points geometry={geometry} frustumCulled={false} raycast={() => undefined}>
      <pointsMaterial size={size} sizeAttenuation={false} color={colour} transparent opacity={0.9} />
    </points>
  )
}

function TargetShape({ frame }: { frame: SceneFrame }) {
  const geometry = useMemo(() => {
    const made = new THREE.BufferGeometry()
    made.setAttribute('position', new THREE.BufferAttribute(frame.positions, 3))
    made.setIndex(new THREE.BufferAttribute(frame.triangles, 1))
    made.computeVertexNormals()
    return made
  }, [frame])
  useEffect(() => () => geometry.dispose(), [geometry])
  if (!frame.triangles.length) return <Dots frame={frame} size={3} colour="#ff9d2e" />
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
