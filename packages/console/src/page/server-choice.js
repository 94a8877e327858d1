import { h } from './dom.js';

/** Creates a choice of one server or all, which offers each server once. */
export function createServerChoice(id, onChange) {
  const element = h('select', { id, onchange: onChange }, h('option', { value: '' }, 'All servers'));
  const known = new Set();
  const offer = (names) => {
    for (const name of names) {
      if (name === '' || known.has(name)) continue;
      known.add(name);
      element.append(h('option', { value: name }, name));
    }
  };
  return {
    element,
    offer,
    /** The chosen server; empty for all. */
    get value() {
      return element.value;
    },
    /** Chooses a server, although it may not be known yet. */
    set(name = '') {
      offer([name]);
      element.value = name;
    },
  };
}
