import { h, setText } from './dom.js';

/**
 * Creates the heads of a table, by which a person sorts: the first click sorts by a column, the second turns the order
 * around, and the third brings back the usual order.
 * @param {readonly { key?: string, text: string, name?: string, isText?: boolean, valueIn?(item: object): any }[]} columns
 *   a column without `key` is not sorted by; `name` is a class; texts begin with A, numbers with the highest
 * @param {{ tag?: string, onChange(order: string): void }} options `tag` is the element of a head
 */
export function createSorting(columns, { tag = 'th', onChange }) {
  let order = '';
  const heads = columns.map((column) => createHead(column, tag, () => choose(next(column.key))));
  const next = (key) => (order === key ? `-${key}` : order === `-${key}` ? '' : key);
  const draw = () => {
    for (const head of heads) head.show(order);
  };
  const choose = (chosen) => {
    order = chosen;
    draw();
    onChange(order);
  };
  return {
    elements: heads.map(({ element }) => element),
    /** The key of a column, with `-` before it for the opposite order; empty for the usual order. */
    get order() {
      return order;
    },
    /** Shows an order that comes from elsewhere, such as the address. */
    set(chosen = '') {
      order = columns.some(({ key }) => key !== undefined && key === chosen.replace(/^-/, '')) ? chosen : '';
      draw();
    },
    /** Sorts items. What is equal keeps its place, and what has no value is last. */
    sort(items) {
      const column = columns.find(({ key }) => key !== undefined && key === order.replace(/^-/, ''));
      return column === undefined ? [...items] : [...items].sort(comparison(column, order.startsWith('-')));
    },
  };
}

function comparison({ valueIn, isText = false }, isReversed) {
  const sign = isText === isReversed ? -1 : 1;
  return (a, b) => {
    const [first, second] = [valueIn(a), valueIn(b)];
    if (first === second) return 0;
    if (first === undefined || first === null) return 1;
    if (second === undefined || second === null) return -1;
    return sign * (first < second ? -1 : 1);
  };
}

function createHead({ key, text, name, isText = false }, tag, onClick) {
  const props = { class: name, ...(tag === 'th' && { scope: 'col' }) };
  // A column that nobody can sort by.
  if (key === undefined)
    return { element: h(tag, props, text || h('span.unseen', {}, 'Actions')), show: () => undefined };
  const arrow = h('span', { 'aria-hidden': 'true' });
  const button = h(
    'button.head',
    { type: 'button', onclick: onClick, title: `Sort by ${text.toLowerCase()}` },
    text,
    arrow,
  );
  const element = h(tag, props, button);
  return {
    element,
    show(order) {
      const isChosen = order.replace(/^-/, '') === key;
      const isAscending = isText !== order.startsWith('-');
      setText(arrow, isChosen ? (isAscending ? ' ▴' : ' ▾') : '');
      if (tag !== 'th') button.setAttribute('aria-pressed', String(isChosen));
      else if (isChosen) element.setAttribute('aria-sort', isAscending ? 'ascending' : 'descending');
      else element.removeAttribute('aria-sort');
    },
  };
}
