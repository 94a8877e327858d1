import { createActionButton } from './actions.js';
import { postAction } from './api.js';
import { h } from './dom.js';
import { time } from './formats.js';

/** The words before a result, and their colours. */
const words = { ok: ['OK', 'good'], fail: ['Failed', 'bad'], note: ['Note', 'warn'] };

/** Creates the button that checks a server as `mcp-gangway check` does, and the block with what was found. */
export function createCheck(server) {
  const element = h('div.check', { role: 'status', hidden: true });
  const show = (...children) => {
    element.hidden = false;
    element.replaceChildren(...children);
  };
  const hide = () => {
    element.hidden = true;
  };
  const run = async () => {
    button.disabled = true;
    show(h('p.muted', {}, 'Checking: another process or connection of the server is started, asked and ended …'));
    try {
      const { check } = await postAction('status/actions/check-server', { server });
      const close = h('button.quiet', { type: 'button', onclick: hide }, 'Close');
      show(
        h('div.heading', {}, h('h4', {}, `Check at ${time(Date.now())}`), close),
        h('ul.results', {}, ...check.results.map(createResult)),
        ...(check.isFine
          ? [h('p.muted', {}, 'The state of the row changes with the next session or probe, which starts the server.')]
          : []),
      );
    } catch (error) {
      show(h('p.bad', {}, `The check failed: ${error.message}`));
    } finally {
      button.disabled = false;
    }
  };
  const props = {
    onclick: run,
    title: 'As the command mcp-gangway check',
    'aria-label': `Check ${server}`,
  };
  const button = createActionButton('sessions', 'button', props, 'Check');
  return { button, element, run };
}

function createResult({ kind, text, details }) {
  const [word, mood] = words[kind] ?? [];
  return h(
    'li',
    {},
    h('p', {}, word === undefined ? undefined : h('b', { class: mood }, `${word} `), text),
    details.length === 0 ? undefined : h('pre', { tabindex: '0', 'aria-label': 'Details' }, details.join('\n')),
  );
}
