import { describe, expect, it } from 'vitest';
import { Subscribers } from '../../../src/core/multiplex/subscribers.ts';

describe('the table of who has asked for what', () => {
  it('says who is told, and what the first and the last one change', () => {
    const table = new Subscribers<string>();
    expect([table.add('ada', 'x'), table.add('bob', 'x'), table.add('bob', 'y')]).toEqual([true, false, true]);
    expect([[...table.of('x')], [...table.of('z')]]).toEqual([['ada', 'bob'], []]);
    expect([table.remove('ada', 'x'), table.remove('ada', 'x'), table.remove('bob', 'x')]).toEqual([
      false,
      false,
      true,
    ]);
    expect([[...table.wanted], [...table.all], table.size]).toEqual([['y'], ['bob'], 1]);
  });

  it('counts nobody twice who asks twice', () => {
    const table = new Subscribers<string>();
    table.add('ada', 'x');
    table.add('ada', 'x');
    expect([...table.wantedBy('ada')]).toEqual(['x']);
    expect(table.remove('ada', 'x')).toBe(true);
  });

  it('says of one who leaves what nobody asks for now, and keeps nothing', () => {
    const table = new Subscribers<object>();
    const [ada, bob] = [{}, {}];
    for (const what of ['x', 'y', 'z']) table.add(ada, what);
    table.add(bob, 'y');
    expect(table.leave(ada)).toEqual(['x', 'z']);
    expect(table.leave(ada)).toEqual([]);
    expect([[...table.wantedBy(ada)], [...table.all], [...table.wanted]]).toEqual([[], [bob], ['y']]);
    expect(table.leave(bob)).toEqual(['y']);
    expect([table.size, [...table.all]]).toEqual([0, []]);
  });
});
