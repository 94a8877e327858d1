import { type GatewayOptions, root } from '../support/gateway.ts';
import { initialize, type Message, type Session, type SessionOptions } from '../support/http-client.ts';

/** The command of a server that remembers the lines it was sent. */
export const recorder = [process.execPath, `${root}test/fixtures/children/records-lines.mjs`] as const;

/** A gateway's options with that server. */
export const withRecorder = (...args: string[]): GatewayOptions => ({ command: recorder, args });

/** A session whose server tells what reached it. */
export interface RecordedSession extends Session {
  /** The lines that reached the server since the last time, in order: all that were forwarded before this call. */
  lines(): Promise<string[]>;
}

/** Opens a session; what `initialize` itself sent to the server is forgotten. */
export async function openRecorded(url: string, options: SessionOptions = {}): Promise<RecordedSession> {
  const session = await initialize(url, options);
  const lines = async (): Promise<string[]> => {
    // Whatever was sent before is read before: messages reach a server in the order in which they were taken.
    const answer = await session.request('test/lines', {}, { id: 'lines' });
    const response = answer.messages.find(({ id }: Message) => id === 'lines');
    if (response?.result === undefined) throw new Error(`test/lines answered ${answer.status}: ${answer.text}`);
    return response.result.lines;
  };
  await lines();
  return { ...session, lines };
}
