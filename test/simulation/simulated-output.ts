import { OutputReader } from '../../src/core/backend/stdio/pipes/output-reader.ts';
import { portionsOf, readServerTexts } from '../../src/core/protocol/message/server-texts.ts';
import { beginTurn } from '../../src/core/util/timing/work-meter.ts';
import type { FakeBackend } from '../support/fake-backend.ts';
import type { Random } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The stdout of a server, which the gateway reads as it reads that of a process: in chunks of any size. */
export class SimulatedOutput {
  readonly #backend: FakeBackend;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #instance: string;
  readonly #reader = new OutputReader(1_000_000);
  /** The calls that the server has got and not answered. */
  calls = 0;
  #unread = '';

  constructor(backend: FakeBackend, clock: VirtualClock, random: Random, instance: string) {
    this.#backend = backend;
    this.#clock = clock;
    this.#random = random;
    this.#instance = instance;
  }

  /** Writes a message. All that a server writes at one time arrives at one time. */
  write(text: string): void {
    if (this.#unread === '') this.#clock.after(0, this.#instance, () => this.#arrive());
    this.#unread += `${text}${this.#random.chance(0.1) ? '\r\n' : '\n'}`;
  }

  #arrive(): void {
    const bytes = Buffer.from(this.#unread);
    this.#unread = '';
    const at = this.#random.chance(0.7) ? bytes.length : this.#random.integer(0, bytes.length);
    for (const chunk of [bytes.subarray(0, at), bytes.subarray(at)]) {
      beginTurn();
      for (const portion of portionsOf(this.#reader.linesOf(chunk), (line) => line)) {
        beginTurn();
        const read = readServerTexts(portion);
        if (read instanceof Promise) throw new Error('a text is too large for the simulation');
        this.#backend.says(...read.messages.map(({ text }) => text));
      }
    }
  }
}
