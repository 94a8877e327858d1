/** How often the environment may still do what it does. */
export interface Budget {
  readonly crash: number;
  /** A process does not renew in time: frozen, or cut off. */
  readonly lapse: number;
  /** One connection breaks. */
  readonly cut: number;
  /** All is lost: with the connections, or unnoticed (FLUSHALL). */
  readonly restartEmpty: number;
  readonly flush: number;
  /** The replica gets the state of now; it becomes the master. */
  readonly replicate: number;
  readonly failover: number;
  /** A reply or a command is lost; or the command arrives after its sender gave it up. */
  readonly lose: number;
  readonly delay: number;
  /** The connection of a request between the instances breaks. */
  readonly linkBreak: number;
  /** The client's connection breaks; it deletes its session. */
  readonly drop: number;
  readonly remove: number;
}

export const noFaults: Budget = {
  crash: 0,
  lapse: 0,
  cut: 0,
  restartEmpty: 0,
  flush: 0,
  replicate: 0,
  failover: 0,
  lose: 0,
  delay: 0,
  linkBreak: 0,
  drop: 0,
  remove: 0,
};
