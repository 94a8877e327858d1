import type { ClusterStore } from '../../src/core/store/store.ts';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';

/** No caller has such a one: it would be seen where ids are put into keys as they are. */
const callId = 'call-{id}\r\n*';

/** Does everything that a store can do, under these names. */
export async function useAll(store: ClusterStore, id: string): Promise<void> {
  const { sessions, log, instances, values, changes, rates, reservations } = store;
  const text = Buffer.from('{}');
  for (const kind of ['secret', 'outcome', 'owner', 'used', 'task'] as const) {
    await values.set(kind, id, text, 60_000);
    await values.keep(kind, id, text, 60_000);
    await values.get(kind, id);
  }
  await rates.use(id, 60_000);
  await reservations.reserve(id, `${id} item`, 1, 60_000, { items: 1, amount: 1 });
  const unfollow = await changes.subscribe(id, { onChange: () => undefined, onMissed: () => undefined });
  await changes.publish(id, text);
  unfollow();
  await instances.join(id);
  await instances.renew(id);
  // The name of an instance is no secret, and no client chooses it.
  await instances.join('me');
  await instances.publishAddress('me', 'localhost:1');
  await instances.addressOf('me');
  await instances.addresses();
  await instances.areAlive([id]);
  await instances.declareDead(`${id} dead`);
  await instances.join('lost');
  await instances.leave('lost');
  await sessions.create(id, aRecord({ owner: id }));
  const opens = [{ stream: 1, id: callId, method: 'tools/call', text }];
  const [event] = createLogWriter(store, id).make({ stream: 1, text: 'a' });
  if (event === undefined) throw new Error('unreachable');
  await log.append(id, epoch, 0, [{ ...event, opens }]);
  await log.read(id, 1, undefined, 10);
  await sessions.amend(id, epoch, { clientState: text, clientSaid: text });
  const taken = await sessions.takeOver(id, { owner: id, epoch }, `${id} next`);
  if (taken.outcome !== 'taken') throw new Error(taken.outcome);
  await sessions.register(id, { ...taken.record, epoch: taken.record.epoch + 1 }, 0, taken.log);
  await sessions.confirmTakeover(id, taken.record.epoch + 1);
  await sessions.release(id, taken.record.epoch + 1);
  await sessions.renew([id]);
  await sessions.create(`${id} ended`, aRecord());
  await sessions.end(`${id} ended`);
}
