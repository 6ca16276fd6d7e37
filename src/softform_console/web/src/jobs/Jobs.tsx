import { useState, type FormEvent } from 'react'
import { send } from '../control'
import { Choice } from '../panel/parts'
import type { Hello, Job, JobKind, JobList, JobOption, Question } from '../protocol'
import { percent } from '../quantities'
import { mayOperate } from '../steering'
import { useStore } from '../store'
import { address, duration, startJob, useAnswer } from './answers'
import { Models, Recordings } from './Shelf'

const PAGES = { jobs: Running, commission: Commission, recordings: Recordings, models: Models }
type Which = keyof typeof PAGES
const TITLES: [Which, string][] = [
  ['jobs', 'Jobs: simulate, learn, judge'],
  ['commission', 'Commission: the first hour on hardware'],
  ['recordings', 'Recordings'],
  ['models', 'Models'],
]

/** Jobs, recordings and models, below the picture. */
export function Jobs() {
  const [open, setOpen] = useState(false)
  const [which, setWhich] = useState<Which>('jobs')
  const Content = PAGES[which]
  return (
    <section className="plots" data-open={open || undefined} aria-label="Jobs">
      <div className="plots-head">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          Jobs
        </button>
        {open && <Choice label="What is shown" quiet value={which} options={TITLES} onChange={setWhich} />}
      </div>
      {open && <WhoseJobs />}
      {open && <Content />}
    </section>
  )
}

/** Whose jobs, recordings and models these are, where robots of several stacks are shown. */
function WhoseJobs() {
  const robots = useStore((store) => store.hello?.robots ?? NONE)
  const looked = useStore((store) => store.robot)
  const own = robots.find((robot) => robot.index === 0)
  if (robots.length < 2 || !own) return null
  return (
    <p className={looked === own.index ? 'muted' : 'warning'}>
      All of this is of <b>{own.title}</b>, the robot of this page's own stack
      {looked === own.index ? '' : ', and not of the one that you look at'}. Others have pages of their own.
    </p>
  )
}

const NONE: Hello['robots'] = []

/** Each actuator moved a little and looked at, by a person who answers here. */
function Commission() {
  return <Running only="commission" />
}

function Running({ only }: { only?: string }) {
  const list = useAnswer<JobList>('jobs', 1000)
  const [chosen, setCommand] = useState('evaluate')
  const command = only ?? chosen
  if (!list) return <p className="muted">Asking for jobs …</p>
  const kind = list.kinds.find((one) => one.command === command)
  const isBusy = list.jobs.some((job) => job.state === 'running' || job.state === 'ending')
  return (
    <div className="jobs">
      <div>
        {!only && (
          <Choice
            label="Command"
            value={command}
            options={list.kinds.map((one) => [one.command, one.command] as const)}
            onChange={setCommand}
          />
        )}
        {kind && <Form key={command} kind={kind} isBusy={isBusy} />}
      </div>
      <div>
        {list.jobs.length === 0 && <p className="muted">No job yet. A job goes on when this page is closed.</p>}
        <ul>
          {list.jobs
            .filter((job) => !only || job.command.startsWith(only))
            .map((job) => (
              <Row key={job.id} job={job} />
            ))}
        </ul>
        {list.log.length > 0 && <pre aria-label="Log of the newest job">{list.log.join('\n')}</pre>}
      </div>
    </div>
  )
}

function Form({ kind, isBusy }: { kind: JobKind; isBusy: boolean }) {
  const start = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    startJob(
      kind.command,
      kind.options.flatMap(({ name, kind: of }) => {
        const value = String(given.get(name || 'argument') ?? '').trim()
        return value === '' ? [] : of === 'flag' ? [name] : name === '' ? [value] : [name, value]
      }),
    )
  }
  return (
    <form onSubmit={start}>
      <p className="muted">{kind.about.replaceAll('`', '')}</p>
      {kind.options.map((option) => (
        <label key={option.name} className="field" title={option.help}>
          <span>{option.name.replace('--', '') || 'which'}</span>
          <Input option={option} isAsked={option.name === '' || kind.command === 'commission'} />
        </label>
      ))}
      {kind.moves && <p className="warning">This moves the robot, until it is done, cancelled or stopped.</p>}
      <button type="submit" className="primary" disabled={isBusy} title={isBusy ? 'One job at a time' : undefined}>
        {isBusy ? 'A job runs' : 'Start'}
      </button>
    </form>
  )
}

/** A choice that is asked for has no default: that of a command is for terminals, where it asks. */
function Input({ option: { name, kind, choices, default: usual }, isAsked }: { option: JobOption; isAsked: boolean }) {
  if (kind === 'flag') return <input name={name} type="checkbox" />
  if (kind !== 'choice')
    return <input name={name} inputMode={kind === 'number' ? 'decimal' : 'text'} placeholder={usual} />
  return (
    <select name={name || 'argument'} required={isAsked}>
      <option value="">{usual || '–'}</option>
      {choices.map((choice) => choice !== usual && <option key={choice}>{choice}</option>)}
    </select>
  )
}

function Row({ job }: { job: Job }) {
  const isOn = job.state === 'running' || job.state === 'ending'
  return (
    <li className={job.state === 'failed' || job.state === 'lost' ? 'warning' : undefined}>
      <b>{job.command}</b>{' '}
      <span className="muted">
        {job.state}, {new Date(1e3 * job.started).toLocaleString()}
        {job.ended !== null && `, ${duration(job.ended - job.started)}`}
      </span>
      {isOn && (
        <div className="row">
          <progress aria-label="Progress of the step" value={job.done ?? undefined} />
          <span role="status">
            {job.done === null
              ? 'no progress told yet'
              : `${job.step}, ${percent(job.done)}${job.left === null ? '' : `, ${duration(job.left)} left of this step`}`}
          </span>
          <button type="button" disabled={job.state === 'ending'} onClick={() => cancel(job.id)}>
            {job.state === 'ending' ? 'Ending …' : 'Cancel'}
          </button>
        </div>
      )}
      {job.question && <Asked key={job.question.number} job={job.id} question={job.question} />}
      {job.text && <p>{job.text}</p>}
      {job.files.map((path) => (
        <a key={path} href={address(path)} target="_blank" rel="noreferrer">
          {path.endsWith('.txt') ? 'log' : path.slice(path.lastIndexOf('/') + 1)}
        </a>
      ))}
    </li>
  )
}

/** What a job asks, and what answers it. */
function Asked({ job, question: { number, text, choices } }: { job: string; question: Question }) {
  const answer = (said: string) => {
    if (mayOperate()) send({ type: 'answer_job', id: job, number, text: said })
  }
  return (
    <form
      className="ask"
      aria-label="Question of the job"
      onSubmit={(event) => {
        event.preventDefault()
        answer(String(new FormData(event.currentTarget).get('answer')))
      }}
    >
      <p role="alert">{text}</p>
      <div className="row">
        {choices.map((choice) => (
          <button key={choice} type="button" className="primary" onClick={() => answer(choice)}>
            {choice}
          </button>
        ))}
        {choices.length === 0 && (
          <>
            <input type="text" name="answer" aria-label="Answer" maxLength={200} />
            <button type="submit" className="primary">
              Answer
            </button>
          </>
        )}
      </div>
    </form>
  )
}

function cancel(id: string): void {
  if (mayOperate()) send({ type: 'cancel_job', id })
}
