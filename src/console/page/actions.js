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
    say(`The action failed: ${error.message}`, true);
  }
}

/** Ends a session: its client gets an error for what is open, and opens a new one. */
export const endSession = ({ server, session }) =>
  confirmed(
    {
      title: `End session ${session}?`,
      text: `Its open requests end with an error. Its process of “${server}” is stopped.`,
      yes: 'End session',
    },
    'status/actions/end-session',
    { server, session },
  );

/** Starts all backends of a server again. */
export const restartServer = ({ name }) =>
  confirmed(
    {
      title: `Restart the processes of ${name}?`,
      text: 'Its sessions continue, each with a new process or connection. Requests in flight that cannot be repeated end with an error.',
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
      text: `${name} accepts no new sessions, finishes requests in flight, hands its sessions over to other instances, and exits. This page closes with it.`,
      yes: 'Drain and exit',
    },
    'status/actions/drain',
    {},
  );
