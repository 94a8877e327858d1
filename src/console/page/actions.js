import { act } from './api.js';
import { h, say } from './dom.js';

/**
 * Asks a person whether something is to be done. The dialog keeps the focus, and Escape is no.
 * @param {{ title: string, text: string, yes: string }} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, yes }) {
  return new Promise((resolve) => {
    let answer = false;
    const settle = (value) => () => {
      answer = value;
      dialog.close();
    };
    const dialog = h(
      'dialog',
      { 'aria-labelledby': 'dialog-title', 'aria-describedby': 'dialog-text' },
      h('h2', { id: 'dialog-title' }, title),
      h('p', { id: 'dialog-text' }, text),
      h(
        'div.buttons',
        {},
        h('button', { type: 'button', onclick: settle(false) }, 'Cancel'),
        h('button.danger', { type: 'button', onclick: settle(true) }, yes),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Does something after a person has confirmed it, and says what came of it. */
async function confirmed(question, path, body) {
  if (!(await confirm(question))) return;
  try {
    say(await act(path, body));
  } catch (error) {
    say(`Not done: ${error.message}`, true);
  }
}

/** Ends a session: its client gets an error for what is open, and opens a new one. */
export const endSession = ({ server, session }) =>
  confirmed(
    {
      title: `End session ${session}?`,
      text: `What its client waits for ends with an error. Its process of ${server} is stopped.`,
      yes: 'End the session',
    },
    'status/actions/end-session',
    { server, session },
  );

/** Starts all backends of a server again. */
export const restartServer = ({ name }) =>
  confirmed(
    {
      title: `Restart the backends of ${name}?`,
      text: 'Its sessions stay and get a new backend each. Calls in flight that cannot be run again end with an error.',
      yes: 'Restart',
    },
    'status/actions/restart-server',
    { server: name },
  );

/** Ends this instance in order. */
export const drainInstance = ({ name }) =>
  confirmed(
    {
      title: 'Drain this instance?',
      text: `${name} takes no new sessions, lets calls in flight end, hands its sessions to other instances if there are any, and exits. This page goes with it.`,
      yes: 'Drain and exit',
    },
    'status/actions/drain',
    {},
  );
