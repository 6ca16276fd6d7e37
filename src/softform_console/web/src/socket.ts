const FIRST_WAIT = 200
const LONGEST_WAIT = 2000

/** What a socket tells its owner; `message` gets text, or a buffer of a binary frame. */
export interface SocketEvents {
  open?(): void
  message(data: string | ArrayBuffer): void
  close?(): void
}

/** A socket that opens itself again whenever it is lost, with growing waits. */
export class ReconnectingSocket {
  private socket: WebSocket | null = null
  private wait = FIRST_WAIT

  constructor(
    private readonly path: string,
    private readonly events: SocketEvents,
  ) {}

  connect(): void {
    const address = new URL(this.path, document.baseURI)
    address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(address)
    this.socket = socket
    socket.binaryType = 'arraybuffer'
    socket.addEventListener('open', () => {
      this.wait = FIRST_WAIT
      this.events.open?.()
    })
    socket.addEventListener('message', (event) => this.events.message(event.data as string | ArrayBuffer))
    socket.addEventListener('close', () => {
      if (this.socket !== socket) return
      this.events.close?.()
      setTimeout(() => this.connect(), this.wait)
      this.wait = Math.min(LONGEST_WAIT, 2 * this.wait)
    })
  }

  /** Send if the socket is open, and say whether it was. */
  send(data: string | ArrayBuffer): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false
    this.socket.send(data)
    return true
  }

  /** Give up a socket that is open, but does not answer. */
  drop(): void {
    this.socket?.close()
  }
}
