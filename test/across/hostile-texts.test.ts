import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { OpenBackend } from '../../src/core/backend/backend.ts';
import { openBackend } from '../core/backend/open-backend.ts';
import { lastingServers, streamingServers } from '../support/writing-servers.ts';

const note = (data: string): string =>
  `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${data}}}`;
const answer = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}';
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };

/** What a hostile server writes before its answer: its texts, those that are messages, and the noise that it may report. */
const rows: readonly {
  readonly what: string;
  readonly texts: readonly string[];
  readonly messages: readonly string[];
  readonly noise: { readonly texts: number; readonly atMostReports: number };
}[] = [
  {
    what: '[G-02] a flood of texts that are no messages, which costs a few reports and a number',
    texts: Array<string>(50_000).fill('x'),
    messages: [],
    noise: { texts: 50_000, atMostReports: 12_500 },
  },
  {
    what: '[S-05] a large message, in order with those around it',
    texts: [note('"first"'), note(`[${'0,'.repeat(1024 * 1024)}0]`), note('"behind it"')],
    messages: [note('"first"'), note(`[${'0,'.repeat(1024 * 1024)}0]`), note('"behind it"')],
    noise: { texts: 0, atMostReports: 0 },
  },
];

/** Messages as a failed test can show them. */
const shortened = (message: string): string => (message.length > 1_000 ? `${message.length} characters` : message);

/** Opens a backend and calls its server. */
function openCounting(open: OpenBackend) {
  const noise = { reports: 0, texts: 0 };
  const opened = openBackend((to) =>
    open({
      onMessages: (...given) => to.onMessages(...given),
      onUnanswered: (...given) => to.onUnanswered(...given),
      onEnd: (end) => to.onEnd(end),
      onNoise(_, more = 0) {
        noise.reports += 1;
        noise.texts += 1 + more;
      },
    }),
  );
  opened.send(call);
  return { ...opened, noise };
}

describe.each(rows)('[P8] $what', ({ texts, messages, noise }) => {
  it.each(Object.entries(streamingServers))(
    'is read up to the answer behind it, and the end: %s',
    async (kind, open) => {
      const written = [...texts, answer].map((text) => Buffer.from(text));
      const opened = openCounting(await open({ texts: written, isLast: true }));
      const seen: string[] = [];
      for (const _ of [...messages, answer]) seen.push(shortened(await opened.messages.next()));
      expect(seen).toEqual([...messages, answer].map(shortened));
      expect(opened.noise.texts).toBe(noise.texts);
      expect(opened.noise.reports).toBeLessThanOrEqual(noise.atMostReports);
      if (Object.hasOwn(lastingServers, kind)) expect((await opened.end()).reason).toBe('exited');
    },
  );
});

it.each(Object.entries(streamingServers))(
  '[S-05] a large message is dropped with all behind it if the backend is closed while it waits for its turn: %s',
  async (_, open) => {
    const texts = [...(rows[1]?.texts ?? []), answer].map((text) => Buffer.from(text));
    const opened = openCounting(await open({ texts, isLast: true }));
    expect(await opened.messages.next()).toBe(note('"first"'));
    const closed = opened.backend.close();
    for (let turn = 0; turn < 500; turn += 1) await nextTurn(); // the large one would have been read
    await closed;
    await opened.end();
    expect(opened.messages.items).toEqual([note('"first"')]);
  },
);
