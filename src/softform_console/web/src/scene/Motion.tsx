import { useEffect, useMemo } from 'react'
import * as THREE from 'three'
import { useMotion, useObstacles } from '../motion'
import { changeObstacle } from '../planning'
import type { Obstacle } from '../protocol'
import { beginGesture } from '../steering'
import { useStore } from '../store'
import { DRAGGED, take } from './drag'
import { usePicture } from './picture'

/** Obstacles, the path that is drawn or planned, and the shape at the time of the motion that is looked at. */
export function Motion() {
  const robot = useStore((store) => store.robot)
  const foreseen = usePicture(robot, 'foreseen')
  const { stroke, motion, time } = useMotion()
  const obstacles = useObstacles()
  const path = stroke?.places ?? motion?.path ?? []
  return (
    <>
      {obstacles.map((obstacle, index) => (
        <Placed key={index} obstacle={obstacle} index={index} />
      ))}
      {path.length > 1 && <Path places={path} />}
      {foreseen && time !== null && (
        <mesh geometry={foreseen.geometry} frustumCulled={false} renderOrder={1} raycast={nothing}>
          <meshStandardMaterial color="#5aa9e6" transparent opacity={0.45} side={THREE.DoubleSide} depthWrite={false} />
        </mesh>
      )}
    </>
  )
}

function Placed({ obstacle: { kind, centre, edges }, index }: { obstacle: Obstacle; index: number }) {
  const chosen = useMotion((motion) => motion.chosen === index)
  return (
    <mesh
      name={`obstacle-${index}`}
      position={centre}
      scale={edges}
      pointerEventsOrder={1}
      onPointerDown={(event) => {
        if (event.button !== 0) return
        beginGesture()
        useMotion.setState({ chosen: index })
        take(event, { place: centre, put: (to) => changeObstacle(index, { centre: to }) })
      }}
      {...DRAGGED}
    >
      {kind === 'ball' ? <sphereGeometry args={[0.5, 32, 20]} /> : <boxGeometry />}
      <meshStandardMaterial color={chosen ? '#c9a7ff' : '#9379c9'} roughness={0.6} transparent opacity={0.75} />
    </mesh>
  )
}

function Path({ places }: { places: [number, number, number][] }) {
  const geometry = useMemo(
    () => new THREE.BufferGeometry().setFromPoints(places.map((place) => new THREE.Vector3(...place))),
    [places],
  )
  useEffect(() => () => geometry.dispose(), [geometry])
  const line = useMemo(() => new THREE.Line(undefined, new THREE.LineBasicMaterial({ color: '#ff9d2e' })), [])
  line.geometry = geometry
  return <primitive object={line} raycast={nothing} frustumCulled={false} />
}

const nothing = () => undefined
