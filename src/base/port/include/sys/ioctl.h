/* What Windows lacks of it is in base/port/port.h, which every file has. */
