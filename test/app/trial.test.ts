import { expect, it } from 'vitest';
import { openTrial } from '../../src/app/trial.ts';
import { createFakeServer } from '../support/fake-backend.ts';

/** What comes of a question that is answered with this text; `ID` in it is the id of the question. */
async function asked(answer: string): Promise<unknown> {
  const { open } = createFakeServer(({ id }, backend) => {
    queueMicrotask(() => backend.says(answer.replaceAll('ID', String(id))));
  });
  const trial = openTrial(open, 50);
  return trial.request('tools/list', {}).then(
    (result) => ({ result }),
    (error: Error) => error.message,
  );
}

it.each([
  ['no object', '{"jsonrpc":"2.0","id":ID,"error":"no"}', 'an error without a message'],
  ['without a message', '{"jsonrpc":"2.0","id":ID,"error":{}}', 'an error without a message'],
  ['whose message has no text', '{"jsonrpc":"2.0","id":ID,"error":{"message":{"toString":1}}}', 'an error without'],
  ['an array', '{"jsonrpc":"2.0","id":ID,"error":[]}', 'an error without a message'],
  ['as it should be', '{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"no"}}', 'the error: no'],
])('[S-02] an error that is %s has the trial say so', async (_, answer, said) => {
  expect(await asked(answer)).toContain(`It answered tools/list with ${said}`);
});

it('[S-02] a response whose error is null is none, and the trial ends in time', async () => {
  expect(await asked('{"jsonrpc":"2.0","id":ID,"error":null}')).toContain('did not answer tools/list within 50 ms');
});
