import type { Session } from './http-client.ts';

/** Tries to reach something that a filter hides. */
type Attempt = (session: Session) => Promise<unknown>;

/** The revision that a session needs for an attempt. */
export const revisionOf = (attempt: string): string => (attempt === 'a batch' ? '2025-03-26' : '2025-11-25');

/**
 * Attempts to reach a hidden tool or prompt of `careless-server.mjs` by another spelling or another way.
 * @param prefix stands before the names of the server
 */
export function attemptsAt(prefix: string): Readonly<Record<string, Attempt>> {
  const [hidden, shown, prompt] = [`${prefix}delete_file`, `${prefix}read_file`, `${prefix}wipe`];
  const call = (name: unknown, more: object = {}): Attempt => {
    return (session) => session.request('tools/call', { name, arguments: {}, ...more });
  };
  const callRaw = (params: string): Attempt => {
    return (session) => session.send(`{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":${params}}`);
  };
  const complete = (ref: object): Attempt => {
    return (session) => session.request('completion/complete', { ref, argument: { name: 'a', value: '' } });
  };
  return {
    'a call before any list': call(hidden),
    'another case': call(hidden.replace('delete_file', 'Delete_File')),
    'the prefix in another case': call(hidden.toUpperCase()),
    'white space': call(` ${hidden}\t`),
    NUL: call(`${hidden}\0`),
    'another Unicode form': call(hidden.replace('delete', 'ｄelete')),
    'a zero-width character': call(hidden.replace('delete', 'delete\u200b')),
    'a list in place of a name': call([hidden]),
    escapes: callRaw(`{"name":"${hidden.replace('d', '\\u0064')}","arguments":{}}`),
    'a key twice': callRaw(`{"name":"${shown}","name":"${hidden}","arguments":{}}`),
    'a key in another case': callRaw(`{"name":"${shown}","Name":"${hidden}"}`),
    'a method in another case': (session) => session.request('Tools/Call', { name: hidden, arguments: {} }),
    'a notification': (session) =>
      session.send({ jsonrpc: '2.0', method: 'tools/call', params: { name: hidden, arguments: {} } }),
    'a task': call(hidden, { task: { ttl: 1000 } }),
    'a hidden prompt': (session) => session.request('prompts/get', { name: prompt }),
    'a completion of a hidden prompt': complete({ type: 'ref/prompt', name: prompt }),
    'a completion without a type': complete({ name: prompt.toUpperCase() }),
    'a template with the name of a prompt': complete({ type: 'ref/prompt', uri: 'a:b', name: prompt }),
    'a batch': (session) =>
      session.send([{ jsonrpc: '2.0', id: 'b', method: 'tools/call', params: { name: hidden, arguments: {} } }]),
  };
}
