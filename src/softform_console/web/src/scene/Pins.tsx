import { useFrame } from '@react-three/fiber'
import { useMemo, useRef } from 'react'
import * as THREE from 'three'
import { robotInfo, robotState, shownPins, useStore, type Pin } from '../store'
import { DRAGGED, pickTarget, removeTarget } from './drag'
import { pictureOf } from './picture'

/** Radii on the screen, pixels: of what is seen, and of what a finger hits. */
const SEEN = 9
const TOUCHED = 22
/** Radius of what is seen in a headset, m. */
const IN_HAND = 0.01
const ORANGE = '#ff9d2e'

/** The points that are wanted: a white one rides on the robot, an orange one is where it is pulled to. */
export function Pins() {
  const pins = useStore(shownPins)
  const selected = useStore((store) => store.selected)
  return (
    <>
      <WarmUp />
      {pins.map((pin) => (
        <PinHandle key={pin.id} pin={pin} selected={pin.id === selected} />
      ))}
    </>
  )
}

/**
 * A speck with the materials of a point, drawn from the start: without it the first press would wait for its shaders,
 * long enough on a slow computer for the server to take the page for frozen.
 */
function WarmUp() {
  const line = useMemo(
    () => new THREE.BufferGeometry().setFromPoints([new THREE.Vector3(), new THREE.Vector3(0, 0, 1e-9)]),
    [],
  )
  return (
    <>
      <lineSegments frustumCulled={false} geometry={line} raycast={nothing}>
        <lineBasicMaterial color={ORANGE} depthTest={false} transparent />
      </lineSegments>
      {[false, true].map((hidden) => (
        <mesh key={String(hidden)} frustumCulled={false} scale={1e-9} raycast={nothing}>
          <sphereGeometry args={[1, 4, 2]} />
          {hidden ? (
            <meshBasicMaterial colorWrite={false} depthWrite={false} />
          ) : (
            <meshBasicMaterial color={ORANGE} depthTest={false} transparent />
          )}
        </mesh>
      ))}
    </>
  )
}

function PinHandle({ pin, selected }: { pin: Pin; selected: boolean }) {
  const feature = useRef<THREE.Mesh>(null)
  const target = useRef<THREE.Group>(null)
  const line = useMemo(() => {
    const geometry = new THREE.BufferGeometry()
    return geometry.setAttribute('position', new THREE.BufferAttribute(new Float32Array(6), 3))
  }, [])
  useFrame(({ camera, size, gl }) => {
    if (!feature.current || !target.current) return
    const perspective = camera as THREE.PerspectiveCamera
    const pixel = (2 * Math.tan((perspective.fov * Math.PI) / 360)) / size.height
    const here = featurePoint(pin, feature.current.position)
    feature.current.visible = here
    for (const one of [feature.current, target.current]) {
      const distance = camera.position.distanceTo(one.getWorldPosition(scratch))
      one.scale.setScalar(gl.xr.isPresenting ? IN_HAND / SEEN : pixel * distance)
    }
    const ends = line.attributes.position as THREE.BufferAttribute
    ends.setXYZ(0, ...(here ? feature.current.position.toArray() : pin.target))
    ends.setXYZ(1, ...pin.target)
    ends.needsUpdate = true
  })
  return (
    <>
      <lineSegments frustumCulled={false} renderOrder={1} geometry={line} raycast={nothing}>
        <lineBasicMaterial color={ORANGE} depthTest={false} transparent />
      </lineSegments>
      <mesh ref={feature} renderOrder={2} raycast={nothing}>
        <sphereGeometry args={[0.62 * SEEN, 20, 14]} />
        <meshBasicMaterial color="#ffffff" depthTest={false} transparent />
        <Outline radius={0.62 * SEEN} />
      </mesh>
      <group ref={target} position={pin.target}>
        <mesh renderOrder={3} raycast={nothing}>
          <sphereGeometry args={[SEEN, 24, 16]} />
          <meshBasicMaterial color={ORANGE} depthTest={false} transparent opacity={0.92} />
          <Outline radius={SEEN} />
        </mesh>
        {selected && (
          <mesh renderOrder={3} raycast={nothing}>
            <sphereGeometry args={[1.55 * SEEN, 24, 16]} />
            <meshBasicMaterial color={ORANGE} depthTest={false} transparent opacity={0.3} />
          </mesh>
        )}
        <mesh
          name={`target-${pin.id}`}
          pointerEventsOrder={1}
          onPointerDown={(event) => pickTarget(event, pin.id)}
          {...DRAGGED}
          onDoubleClick={(event) => removeTarget(event, pin.id)}
        >
          <sphereGeometry args={[TOUCHED, 12, 8]} />
          <meshBasicMaterial colorWrite={false} depthWrite={false} />
        </mesh>
      </group>
    </>
  )
}

/** A dark rim, so that a point is seen on a light ground, too. */
function Outline({ radius }: { radius: number }) {
  return (
    <mesh renderOrder={1} raycast={nothing}>
      <sphereGeometry args={[1.16 * radius, 24, 16]} />
      <meshBasicMaterial color="#10141b" depthTest={false} transparent />
    </mesh>
  )
}

const scratch = new THREE.Vector3()
const nothing = () => undefined

/** Where the robot's own point is now; false where that is not known. */
export function featurePoint(pin: Pin, out: THREE.Vector3): boolean {
  const store = useStore.getState()
  const output = robotInfo(store)?.outputs.findIndex((one) => one.name === pin.output) ?? -1
  const frame = robotState(store)?.frames.find((one) => one.name === pin.output)
  if (frame) {
    out.fromArray(frame.place)
    return true
  }
  return pictureOf(store.robot).surface?.pointAt(output, [pin.u, pin.v], out) != null
}
