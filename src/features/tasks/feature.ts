import type { TasksFeature } from '../../app/features/eras.ts';
import { GatewayTasks } from './gateway-tasks.ts';
import { ModernTasks } from './modern-tasks.ts';

export const tasks: TasksFeature = {
  create(options) {
    const all = new GatewayTasks(options);
    return {
      of: (server, afterMs, marks) => new ModernTasks({ tasks: all, afterMs, marks, server }),
      close: () => all.close(),
    };
  },
};
