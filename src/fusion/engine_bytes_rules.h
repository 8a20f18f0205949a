/* The engine's rules for groups of bytes (engine_bytes_rules.c), part of ot_engine_rules. */
#ifndef OT_FUSION_ENGINE_BYTES_RULES_H
#define OT_FUSION_ENGINE_BYTES_RULES_H

#include "fusion.h"

/* most products of two bytes that a sum of int32 holds: times 255 * 255 below 2^31 */
#define OT_BYTES_SUMS 33025

bool ot_engine_takes_bytes(const ot_group_view *v, const ot_group *group, uint32_t place,
                           ot_group_role role);

#endif
