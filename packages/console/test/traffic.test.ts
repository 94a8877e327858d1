import { expect, test } from 'vitest';
import { Traffic } from '../src/record/traffic.ts';

test('the store is as fast as its commands of the last minute, and events are taken once', () => {
  let now = 0;
  const traffic = new Traffic(() => now);
  expect(traffic.storeSpeed).toEqual({ meanMs: undefined, longestMs: undefined });
  const command = traffic.meter('redisSeconds');
  command?.add(0.002);
  command?.add(0.004);
  expect(traffic.storeSpeed).toEqual({ meanMs: 3, longestMs: 4 });
  now += 30_000;
  command?.add(0.012);
  expect(traffic.storeSpeed).toEqual({ meanMs: 6, longestMs: 12 });
  now += 30_000;
  expect(traffic.storeSpeed).toEqual({ meanMs: 12, longestMs: 12 });
  now += 90_000;
  expect(traffic.storeSpeed.meanMs).toBeUndefined();

  traffic.meter('eventsDelivered')?.add(3);
  traffic.meter('eventsDelivered')?.add(2);
  expect(traffic.takeEvents()).toBe(5);
  expect(traffic.takeEvents()).toBe(0);
  expect(traffic.meter('sessions')).toBeUndefined();
});
