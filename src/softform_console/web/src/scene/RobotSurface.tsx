import { useThree } from '@react-three/fiber'
import { useEffect, useMemo, useRef } from 'react'
import * as THREE from 'three'
import { robotInfo, useStore } from '../store'
import { drop, move, pickSurface } from './drag'
import { surfaceMaterial } from './material'
import { usePicture } from './picture'
import type { Surface } from './surface'

/** The predicted mesh: what is pressed and dragged. */
export function RobotSurface() {
  const robot = useStore((store) => store.robot)
  const visible = useStore((store) => store.layers.surface)
  const surface = usePicture(robot, 'surface')
  const size = useStore((store) => robotInfo(store)?.size ?? 0.3)
  const material = useMemo(() => surfaceMaterial(), [])
  const hint = useRef<THREE.Mesh>(null)
  const { invalidate, gl } = useThree()
  const section = useStore((store) => store.section)
  const cut = surface && section < 1 ? surface.xAt(section) : Infinity
  const raycast = useMemo(() => (surface ? castOn(surface, cut) : () => undefined), [surface, cut])
  useEffect(() => {
    material.clippingPlanes = cut === Infinity ? [] : [new THREE.Plane(new THREE.Vector3(-1, 0, 0), cut)]
    material.needsUpdate = true
  }, [material, cut])
  if (!surface || !visible) return null
  const preview = (point: THREE.Vector3 | null) => {
    if (!hint.current) return
    hint.current.visible = point !== null
    gl.domElement.style.cursor = point ? 'pointer' : ''
    if (point) hint.current.position.copy(hint.current.parent!.worldToLocal(point.clone()))
    invalidate()
  }
  return (
    <>
      <mesh
        name="surface"
        geometry={surface.geometry}
        material={material}
        raycast={raycast}
        frustumCulled={false}
        onPointerDown={pickSurface}
        onPointerMove={(event) => {
          move(event)
          preview(event.buttons === 0 ? event.point : null)
        }}
        onPointerUp={drop}
        onPointerCancel={drop}
        onPointerLeave={() => preview(null)}
      />
      <mesh ref={hint} visible={false} renderOrder={2} raycast={() => undefined}>
        <sphereGeometry args={[0.018 * size, 16, 12]} />
        <meshBasicMaterial color="#ffffff" transparent opacity={0.85} depthTest={false} />
      </mesh>
    </>
  )
}

const ray = new THREE.Ray()
const inverse = new THREE.Matrix4()

function castOn(surface: Surface, cut: number) {
  return function raycast(this: THREE.Mesh, caster: THREE.Raycaster, hits: THREE.Intersection[]) {
    inverse.copy(this.matrixWorld).invert()
    const hit = surface.firstHit(ray.copy(caster.ray).applyMatrix4(inverse), cut)
    if (!hit) return
    hit.object = this
    hit.point.applyMatrix4(this.matrixWorld)
    hit.distance = hit.point.distanceTo(caster.ray.origin)
    if (hit.distance >= caster.near && hit.distance <= caster.far) hits.push(hit)
  }
}
