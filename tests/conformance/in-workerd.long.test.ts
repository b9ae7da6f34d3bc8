import { playAllIn } from './play.ts';

playAllIn('workerd');
